# The course's commands. `make lab` opens it, `make test` checks all of it.
# Written for any make (also macOS's 3.81) and any POSIX shell.
VENV ?= .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
SETUP := pyproject.toml constraints.txt setup.py
PIP := $(PY) -m pip --disable-pip-version-check
LAB_FLAGS ?= $(if $(filter 0,$(shell id -u)),--allow-root)
# One notebook or deck by number, e.g. `make notebooks NB=02`; some parts of the tests, e.g.
# `make test PARTS="lint package"`; CHANGED=1 leaves out pages that passed and have not changed since.
NB ?=
PARTS ?=
CHANGED ?=
# The name of a new lecture, e.g. `make new-lecture NB=18 NAME=a_name`.
NAME ?=
# `PDF=no`: kit and decks without PDFs, and so without a browser. A file of your own plans for the kit.
PDF ?=
PLAN ?=
NO_PDF := $(if $(filter no 0 false,$(PDF)),--no-pdf)

.PHONY: lab test notebooks slides site kit new-lecture bench release clean help

help:
	@echo "make lab        install into $(VENV) and open the course in JupyterLab"
	@echo "make test       run every test, with the time of each part (PARTS=\"lint package\" for some)"
	@echo "make notebooks  execute notebooks/source and write the notebooks (NB=02 for one)"
	@echo "make slides     build the decks, HTML and PDF, into slides/build (NB=02 for one, PDF=no)"
	@echo "make kit        write the instructor's kit into build/kit: syllabi, notes, exams, grading"
	@echo "                (PDF=no without a browser, PLAN=my.toml for a plan of your own)"
	@echo "make site       build the pages as a site, without server or network, into build/site"
	@echo "make new-lecture  lay an empty room, page and deck (NB=18 NAME=a_name)"
	@echo "make bench      measure the speed figures the course states"
	@echo "make release    wheel, decks, site, kit and their hashes, into dist/"
	@echo "make clean      remove what the other commands made"

# GOMP_SPINCOUNT: a browser runs beside the kernel, and torch's threads wait for each other by spinning;
# with less of it a step beside other work takes half as long, and alone as long as before.
lab: $(VENV)/.lab
	GOMP_SPINCOUNT=$${GOMP_SPINCOUNT-10000} $(BIN)/jupyter lab $(LAB_FLAGS) notebooks/00_start_here.ipynb

test: $(VENV)/.test
	COURSE_ONLY_CHANGED=$(CHANGED) $(PY) tests/run.py $(PARTS)

notebooks: $(VENV)/.test
	$(PY) notebooks/source/build.py $(NB)

slides: $(VENV)/.slides
	$(PY) slides/source/build.py $(NB) $(NO_PDF)

kit: $(VENV)/$(if $(NO_PDF),.lab,.kit)
	$(PY) -m course_lib.teaching.kit --into build/kit $(NO_PDF) $(if $(PLAN),--plan "$(PLAN)")

site: $(VENV)/.site
	$(PY) notebooks/site/build.py $(NB)

new-lecture: $(VENV)/.test
	$(PY) notebooks/source/new_lecture.py "$(NB)" "$(NAME)"
	$(PY) notebooks/source/build.py "$(NB)"

bench: $(VENV)/.lab
	$(PY) -m course_lib.bench

release: $(VENV)/.test
	$(PY) .ci/release.py

# Nothing that the commands above did not write: an environment of our own, folders with our mark.
clean:
	-@python=$(PY); [ -x "$$python" ] || python=python3; \
		"$$python" -m course_lib.teaching.folders slides/build build/site build/kit dist
	@if [ -f $(VENV)/.made ]; then rm -rf $(VENV); fi
	rm -rf build/live build/environments build/pages_passed.json tests/browser/screenshots
	rm -rf .mypy_cache .ruff_cache .pytest_cache bert_family_course.egg-info
	-@rmdir build 2>/dev/null || true

# Stamps: an environment is made once, and again when what it is made from changes. A stamp is
# written last, so an interrupted installation is repeated. `.made` marks an environment that was made
# here; another one, VENV=~/my-env, is installed into and never removed.
$(VENV)/.lab: $(SETUP) | $(PY)
	$(PIP) install -c constraints.txt -e '.[lab,weights,languages,domains,onnx,search]'
	-$(PIP) install --no-deps financetoolkit==2.3.0
	-$(BIN)/jupyter labextension disable --level=sys_prefix @jupyterlab/apputils-extension:announcements
	@touch $@

# What a command needs beyond the lab: its extra in pyproject.toml, a few packages.
$(VENV)/.kit $(VENV)/.slides $(VENV)/.site: $(VENV)/.lab
	$(PIP) install -c constraints.txt -e '.[lab,weights,languages,domains,onnx,search,$(subst .,,$(notdir $@))]'
	@touch $@

$(VENV)/.test: $(VENV)/.lab
	$(PIP) install -c constraints.txt -e '.[lab,weights,languages,domains,onnx,search,kit,slides,site,test]'
	@touch $(VENV)/.kit $(VENV)/.slides $(VENV)/.site $@

$(PY):
	@for python in "$(PYTHON)" python3 python3.13 python3.12 python3.11 python; do \
		if [ -n "$$python" ] && "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "making $(VENV) with $$python ($$("$$python" --version 2>&1))"; \
			"$$python" -m venv $(VENV) && touch $(VENV)/.made && exit 0; \
			rm -f $(PY); \
			echo "That Python cannot make environments; on Debian or Ubuntu: sudo apt install python3-venv" >&2; \
			exit 1; \
		fi; \
	done; \
	echo "The course needs Python 3.11 or newer; found: $$(python3 --version 2>&1 || echo none)." >&2; \
	echo "Install it from https://www.python.org/downloads/, or name one: make lab PYTHON=/path/to/python3" >&2; \
	exit 1
