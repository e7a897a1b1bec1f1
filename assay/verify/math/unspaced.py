"""Chinese, Japanese, Korean and Thai around and behind an answer: cut into pieces that are known to be harmless.

These languages put no blanks between words, or hang particles on them. So a text is known where it can be cut into
pieces of a table, or of the question, from its beginning to its end.
"""

from __future__ import annotations

import functools
import re

MAX_LENGTH = 200
LETTER = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f\uac00-\ud7af々〇]")
_RUN = re.compile(LETTER.pattern + r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f\uac00-\ud7af々〇]*")
_STATES = """
他 她 它 他们 她们 总数 總數 总和为 总数为 现在 現在 一共有 一共是 人数 个数 答案 答 结果 結果 是 为 為 即 即为 也就是
就是 等于 等於 所以 因此 因而 于是 於是 故 从而 可得 得 得到 得出 求得 解得 算得 可知 最终 最終 最后 最後 我们 我們 的
了 该 這 这 这个 這個 该数 所求 正确 正確 综上 綜上 综上所述 综合 由此 可以 可 共 一共 总共 總共 共有 共计 合计 总计
全部 还 還 还剩 還剩 剩 剩下 剩余 余 还有 有 需要 需 要 应付 花 花了 付 用 用了 每 每人 每个 每個 每天 每小时 分到
得分 个 個 颗 棵 间 名 支 双 对 片 套 串 根 把 包 瓶 杯 头 匹 朵 幅 层 排 列 行 本 元 元钱 钱 块 角 分 岁 歲 天 日 月
年 小时 小時 分钟 分鐘 秒 米 千米 公里 厘米 毫米 平方 立方 平方厘米 平方米 升 毫升 克 千克 公斤 吨 斤 度 人 名 条 條
只 张 張 件 盒 箱 种 種 位 次 页 頁 座 棵 道 辆 倍数 值 数值 數值 值为 数 數 数字 和 与 與 及 或 且 时 時 到 达 到达
长 長 宽 寬 高 面积 面積 体积 體積 周长 周長 边长 邊長 半径 直径 圆 长方形 长方体 正方形 正方体 三角形 梯形 平行四边形
表面积 角 内角 外角 对角线 概率 機率 平均 平均数 平均值 中位数 众数 方程 方程的解 解 解集 根 函数 导数 積分 积分 极限
極限 行列式 矩阵 向量 系数 常数 项 第 通项 通项公式 公式 坐标 座標 点 點 线 直线 斜率 截距 最大 最小 最大值 最小值
最大公因数 最大公约数 最小公倍数 公约数 约数 因数 质数 质因数 素数 分解 因式分解 化简 化简得 展开 二进制 进制 十进制
八进制 十六进制 极坐标 形式 表达式 式 式子 商 差 积 乘积 总和 余数 分数 小数 百分之 百分比 百分数 比 比例 速度 路程
距离 时间 价格 总价 单价 成本 利润 收入 工资 折扣 找回 找零 苹果 蘋果 学生 學生 男生 女生 孩子 朋友分到 同学 铅笔 笔
书 糖 糖果 球 鸡蛋 票 座位 水 面粉 上午 下午 早上 晚上 点钟 点整 星期 星期一 星期二 星期三 星期四 星期五 星期六 星期日
周 华氏 摄氏 千瓦时 负 正 无穷 無窮 无穷大 正无穷 负无穷 实数 所有 全体 任意 整数 自然数 集合 区间 不等式 万 亿 千 百
十 零 〇 一 二 三 四 五 六 七 八 九 分之 两 兩 卖出 卖 买 走 行驶 剩下的 放 答え 答 答えは こたえ 解答 正解 解 結果
最終的 最終的な 最終 な は が を に で と の も です である だ でした になります となります となる になる なる なり
なります あります ある いる います 残ります 残り 残る 入ります 必要です 必要 かかります 進みます 着きます 到着します
買えます もらえます 払います します する した して よって したがって 従って ゆえに 故に つまり すなわち だから なので
から ので ため 求める 求まる 得られる 得られます 得る 得ます 全部で 全部 合計 合わせて みんなで おつり 代金 値段 ずつ
個 本 枚 冊 人 円 匹 羽 台 回 通り 分 時間 時 秒 日 年 歳 才 月 曜日 メートル センチ キロ キログラム グラム リットル
度 割 パーセント 平方 立方 面積 体積 周 周の長さ 長さ 高さ 幅 半径 直径 円の 三角形 四角形 長方形 正方形 直方体 立方体
内角 和 差 積 商 余り 平均 確率 割合 速さ 距離 方程式 解は 値 数 式 係数 関数 導関数 微分 積分 極限 行列式 ベクトル
座標 傾き 切片 点 直線 最大公約数 最小公倍数 約数 倍数 素因数 素因数分解 因数分解 因数分解すると 展開 展開すると 整理
整理すると 計算 計算すると 両辺 両辺を 割ると 足すと 引くと 掛けると かけると 一つ 二つ 三つ 二人 ユーロ ドル セント
午前 午後 月曜日 火曜日 水曜日 木曜日 金曜日 土曜日 日曜日 すべて 全て 実数 無限大 正 負 いつも 常に この その これ
それ それぞれ 各 毎 方 数は りんご みかん 本の ペン 鉛筆 卵 箱 生徒 子ども 子供 席 答 답 답은 정답 정답은 결과 결과는
최종 최종적인 값 값은 해 해는 은 는 이 가 을 를 의 에 와 과 로 으로 도 그 그러므로 따라서 즉 그래서 결국 모두 전부 총
합 합계 합은 차 곱 몫 나머지 입니다 이다 다 됩니다 된다 되고 이고 이므로 므로 이며 있습니다 있다 남습니다 남는다 남은
걸립니다 필요합니다 받습니다 나옵니다 얻습니다 얻는다 구하면 계산하면 정리하면 풀면 나누면 더하면 빼면 곱하면
인수분해하면 전개하면 개 그루 송이 켤레 채 쌍 줄 칸 층 가지 통 포기 페이지 쪽 조각 인분 봉지 잔 컵 원 명 자루 권 마리
송이 장 병 대 번 살 세 시간 분 초 일 월 년 시 오전 오후 도 미터 센티미터 킬로미터 그램 킬로그램 리터 씩 한 두 수 수는
큰 작은 최대공약수 최소공배수 약수 배수 소수 넓이 넓이는 부피 둘레 길이 높이 너비 반지름 지름 삼각형 사각형 직사각형
정사각형 각 확률 평균 비율 속력 거리 방정식 방정식의 함수 도함수 극한 적분 행렬식 벡터 좌표 기울기 점 직선 항 제 가격
값은 연필 사과 책 학생 사람 상자 공 실수 모든 달러 유로 센트 퍼센트 요일 คำตอบ ผลลัพธ์ ผลรวม ค่าของ ค่า คือ เป็น เท่ากับ
ทั้งหมด รวม มี อยู่ ดังนั้น เพราะฉะนั้น จึง ได้ สุดท้าย ของ จำนวน ที่ ถูกต้อง ครับ ค่ะ นะ บาท ชั่วโมง นาที วินาที เมตร กิโลเมตร
เซนติเมตร กิโลกรัม กรัม ลิตร องศา วัน ปี คน อัน แท่ง ด้าม เล่ม ลูก ใบ กล่อง ด้าน หน้า ตัว ชิ้น ดอลลาร์ เปอร์เซ็นต์ เหลือ และ
จะ
"""
_CHECKS = """
因为 因為 由于 再 再除以 再乘以 移项 移項 解方程 两边同时 同时 由於 验证 驗證 检验 檢驗 验算 驗算 检查 代入 代回
原方程 原式 解释 解釋 解析 说明 說明 理由 过程 過程 成立 正确 符合 满足 滿足 题意 題意 条件 條件 乘 乘以 除以 加 加上
减 減 减去 左边 右边 左右 两边 等式 两数 根据 由 将 把 已知 其中 检算 定理 勾股定理 公式 定义 计算 价格 数量 单价 相等
通过 无误 結果无误 确认 可以验证 恒等 なぜなら からです ためです 検算 検算すると 検算も しました します 確認
確認すると 確かめ 確かめると 検証 説明 理由 解説 代入すると 代入 元の 式に 満たします 満たす 成り立ちます 成り立つ
成立します 合います 合っています 一致します 定理 三平方の定理 公式 定義 条件 倍 足す 引く 掛ける 割る 単価 個数 数量
ように 計算 もとの 正しい 正しいです 왜냐하면 때문입니다 때문 기 검산 검산하면 검산도 검산해 확인 확인하면 확인해 보면
맞습니다 설명 풀이 이유 대입 대입하면 성립합니다 성립 만족합니다 만족 원래 식에 식 방정식에 정리 피타고라스 공식 조건
가격에 권수를 곱합니다 더합니다 곱하기 더하기 빼기 나누기 보면 해보면 개수 수량 단가 에서 면 하면 하여 ตรวจสอบ
ตรวจคำตอบ เพราะ เนื่องจาก แทนค่า คำอธิบาย วิธีทำ บวก ลบ คูณ หาร กับ ด้วย
"""
_CUE = re.compile(
    r"因[为為]|由[于於]|[验驗][证證算]|[检檢][验驗查算]|代[入回]|解[释釋析]|[说說]明|理由|[过過]程|成立|符合|[满滿]足|"
    r"なぜなら|からです|ためです|検[算証]|確[認か]|説明|理由|解説|満た|成り立|正しい|合(?:います|っています)|"
    r"一致します|"
    r"왜냐|때문|검산|확인|설명|풀이|이유|대입|성립|만족|맞습니다|ตรวจ|เพราะ|เนื่องจาก|แทนค่า|คำอธิบาย|วิธีทำ"
)
_CLOSES = re.compile(
    r"以上(?:です)?|证毕|證畢|解毕|完毕|終わり(?:です)?|끝|이상입니다|(?:答案|结果)正[确確]|谢谢|"
    r"ありがとうございます|감사합니다"
)


_DENIES = re.compile(r"[不没沒非未否]|ない|ません|않|아니|아닙|ไม่")


@functools.cache
def _table(explaining: bool) -> tuple[frozenset[str], int]:
    words = frozenset((_STATES + _CHECKS if explaining else _STATES).split())
    return words, max(map(len, words))


def known_pieces(text: str, question: str, explaining: bool = False) -> bool:
    """Say whether every run of letters of ``text`` can be cut into known pieces.

    Args:
        text: letters of other scripts are passed over.
        question: any two letters of it that follow each other are known, too.
        explaining: the words of checks and reasons are known.
    """
    return all(_cut(run, question, explaining) for run in _RUN.findall(text[:MAX_LENGTH]))


@functools.lru_cache(2048)
def _cut(run: str, question: str, explaining: bool) -> bool:
    words, longest = _table(explaining)
    reached = {0}
    for start in range(len(run)):
        if start not in reached:
            continue
        for end in range(start + 1, min(len(run), start + longest) + 1):
            piece = run[start:end]
            if piece in words or (end - start > 1 and piece in question and _DENIES.search(piece) is None):
                reached.add(end)
    return len(run) in reached


def explains(text: str) -> bool:
    """Say whether a sentence checks or gives a reason."""
    return _CUE.search(text) is not None


def ends(text: str) -> bool:
    """Say whether a sentence only ends the response."""
    return _CLOSES.fullmatch(text.strip(" 。.！!")) is not None
