# Targets for people. `make demo` and `make test` need Go and nothing else.
SHELL      := /bin/bash
GO         ?= go
FUZZTIME   ?= 10s
BENCHTIME  ?= 1s
PKG        ?= ./...
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS    := -s -w -X main.version=$(VERSION)
TARGETS    := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.DEFAULT_GOAL := help
.PHONY: help demo build test test-go bench experiment fuzz lint cross vulncheck generate demo-svg clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

demo: ## watch an agent work: no key, no network
	@$(GO) build -o bin/thinkflow ./cmd/thinkflow
	@bin/thinkflow demo

build: ## bin/thinkflow for this machine
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/thinkflow$(shell $(GO) env GOEXE) ./cmd/thinkflow

test: ## install what the tests need, then run all of them
	@if [ -x scripts/test-deps.sh ]; then scripts/test-deps.sh; fi
	$(GO) test -race $(PKG)

test-go: ## the tests without installing anything
	$(GO) test $(PKG)

bench: ## benchmarks; figures are for reading, no test asserts them
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(PKG)

# The scripted part takes minutes; other agents stand in the report as they were
# measured last. More: make experiment EXPERIMENT='--peers --front-end', or against
# real endpoints: EXPERIMENT='--live --models NAME --doc docs/experiment-live.md'.
experiment: ## measure the same work in every protocol and with other agents
	$(GO) build -trimpath -o bin/ ./cmd/thinkflow ./internal/experiment/cmd/thinkflow-experiment
	bin/thinkflow-experiment --doc docs/experiment.md --with testdata/experiment/peers.json $(EXPERIMENT)

# Every fuzz target for FUZZTIME each, one after the other.
fuzz: ## make fuzz FUZZTIME=30s
	@set -euo pipefail; \
	for pkg in $$($(GO) list -f '{{.ImportPath}}' $(PKG)); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; \
	    $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

lint: ## gofmt, vet, staticcheck
	@out=$$(gofmt -l $$(find . -name '*.go' -not -path '*/node_modules/*')); if [ -n "$$out" ]; then echo "not formatted:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

cross: ## build for every target
	@set -e; for t in $(TARGETS); do \
	  echo "building $$t"; \
	  CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -o /dev/null ./...; \
	  CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) vet ./...; \
	done

vulncheck: ## known vulnerabilities in what we import (needs the network)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

generate: ## generated documents and golden files
	$(GO) generate ./...

demo-svg: ## draw the picture of the README anew (needs tmux)
	$(GO) build -o bin/thinkflow ./cmd/thinkflow
	$(GO) run ./scripts/demo-svg -o docs/demo.svg -- bin/thinkflow demo

clean: ## remove bin
	rm -rf bin
