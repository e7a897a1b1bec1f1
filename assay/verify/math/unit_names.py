"""Names of units in other languages than English, by the unit; and of squares and cubes, by exponent and unit."""

from __future__ import annotations

NAMES = """
km: kilómetro kilómetros kilomètre kilomètres chilometro chilometri quilómetro quilómetros quilômetro quilômetros км
km: километр километра километров 公里 千米 キロメートル キロ 킬로미터
m: metro metros mètre mètres metri м метр метра метров 米 メートル 미터
cm: centímetro centímetros centimètre centimètres centimetro centimetri zentimeter см сантиметр сантиметра сантиметров
cm: 厘米 公分 センチ センチメートル 센티미터
mm: milímetro milímetros millimètre millimètres мм 毫米 ミリメートル
kg: kilogramo kilogramos kilogramme kilogrammes kilogramm chilogrammo chilogrammi кг килограмм килограмма килограммов
kg: 公斤 千克 キログラム 킬로그램
g: gramo gramos grammo grammi gramm г грамм грамма граммов 克 グラム 그램
l: litro litros litri литр литра литров л 升 公升 リットル 리터
ml: mililitro mililitros 毫升 мл
h: stunde stunden std heure heures hora horas ora uur час часа часов ч 小时 小時 時間 시간 godzina godziny godzin saat
h: ore timme timmar timer uren tuntia giờ jam ساعة ساعات घंटे घंटा годин година hodin hodiny
min: minuto minutos minuti minuten minut minuty minuter minutter dakika phút menit минута минуты минут мин دقيقة
min: मिनट хвилин 分钟 分鐘 分 분
s: saniye giây detik ثانية सेकंड sekunder sekundy sekund
s: segundo segundos secondo secondi seconde secondes sekunde sekunden секунда секунды секунд с сек 秒 초
day: dagen dagar dage dni dní gün ngày hari يوم أيام दिन днів
day: tag tage tagen día días jour jours giorno giorni dia dias день дня дней 天 日
week: woche wochen semana semanas semaine semaines settimana settimane неделя недели недель 周 星期
month: monat monate mes meses mois mese mesi месяц месяца месяцев
year: jaar år lat rok yıl năm tahun سنة वर्ष साल 年 년
year: jahr jahre año años année années anno anni ano anos год года лет
deg: grad grados grado gradi degré degrés graus градус градуса градусов 度
euro: евро 欧元 ユーロ
dollar: dollari dolar dolarów dolarů đô doları dolara дол دولار دولارا डॉलर
euro: eurot
ruble: rubel rubli
won: 원
yen: yenes
yuan: 人民币
gbp: sterline 英镑 ポンド 파운드
pound: libras pfund фунт фунта фунтов
rupee: roupies रुपये rupias
dollar: dólar dólares доллар доллара долларов 美元 ドル 달러
ruble: рубль рубля рублей руб
yen: 日元
eurocent: centime centimes céntimo céntimos
"""
SQUARES_AND_CUBES = """
2: quadratmeter 平方米 平方メートル 제곱미터 sqm qm
2cm: quadratzentimeter 平方厘米 平方公分
2km: quadratkilometer 平方公里 平方千米
3: kubikmeter 立方米
3cm: kubikzentimeter 立方厘米
2foot: sqft
"""
