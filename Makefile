# Thin targets; what they do lives in .ci. README.md explains the two that matter: demo and test.

.PHONY: help setup demo test bench docs man completions

help:
	@echo "make demo         install what is needed, build, check this machine, share a desktop and watch it"
	@echo "make test         every check and test of the project"
	@echo "make bench        measure speed as ratios (JSON=1 for programs)"
	@echo "make docs         renew the generated documents"
	@echo "make man          write the manual pages to dist/man"
	@echo "make completions  write the shell completions to dist/completions"

setup:
	@.ci/setup

demo: setup
	@.ci/demo

test: setup
	@.ci/test

# Standard output carries the table or the JSON object and nothing else.
bench:
	@.ci/setup >&2
	@cargo bench --quiet --bench bench -- $(if $(JSON),--json) $(if $(ONLY),--only "$(ONLY)") $(if $(QUICK),--quick)

docs: setup
	UPDATE_EXPECT=1 cargo test --test it docs::

man: setup
	mkdir -p dist/man
	cargo run --quiet --bin crossdesk-cli -- man --dir dist/man

completions: setup
	mkdir -p dist/completions
	cargo run --quiet --bin crossdesk-cli -- completions bash > dist/completions/crossdesk-cli.bash
	cargo run --quiet --bin crossdesk-cli -- completions zsh > dist/completions/_crossdesk-cli
	cargo run --quiet --bin crossdesk-cli -- completions fish > dist/completions/crossdesk-cli.fish
