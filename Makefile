# unthrottle: two targets do everything.
#   make demo   builds, and shows throttling and its end on this host (as root)
#   make test   runs every test: linters, the host's part, the lab's part
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
BIN := bin
OUT := .cache/test
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# Fuzz targets run this long each in `make fuzz`.
FUZZTIME ?= 20s

include test/lab/lab.mk
include bench/bench.mk
include bench/accuracy.mk
include internal/see/probe/probe.mk

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: need-go
need-go:
	@command -v $(GO) >/dev/null || { echo "Go is missing: install Go 1.26 or newer (Debian: apt-get install golang-go, or the archive from the Go project) and put it on PATH" >&2; exit 1; }

.PHONY: build
build: need-go ## bin/unthrottle, static
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/unthrottle ./cmd/unthrottle

.PHONY: demo
demo: build ## build, then show throttling and its end on this host (as root)
	@$(BIN)/unthrottle demo

.PHONY: lint
lint: need-go ## gofmt, go vet, staticcheck
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "gofmt -w these files:"; echo "$$bad"; exit 1; fi
	@$(GO) vet ./...
	@$(GO) -C tools/lint build -o ../../$(BIN)/staticcheck honnef.co/go/tools/cmd/staticcheck
	@$(BIN)/staticcheck ./...

.PHONY: need-cc
need-cc:
	@command -v gcc >/dev/null || command -v cc >/dev/null || { echo "a C compiler is missing, and the race detector needs one: apt-get install gcc libc6-dev" >&2; exit 1; }

.PHONY: test-host
test-host: need-go need-cc
	@mkdir -p $(OUT)
	@echo "== building the tests, race detector on"
	@$(GO) test -race -run '^$$' ./... > /dev/null || true
	@echo "== tests on this host"
	@# One package at a time: two experiments on the real kernel at once would measure each other.
	@$(GO) test -race -count=1 -p 1 -timeout 15m -json ./... | tee $(OUT)/host.json \
	  | sed -u -n 's/.*"Output":"\(ok\|FAIL\) *\\t\([^\\]*\)\\t\([^\\"]*\).*/  \1  \2  \3/p' || true

.PHONY: test
test: lint test-host lab-test-json ## every test: linters, this host, the lab's many-CPU guest
	@$(GO) run ./test/lab/cmd/skips $(OUT)/host.json $(OUT)/lab.json

.PHONY: docs
docs: need-go ## write fresh output into README and docs (as root, on an idle host with cgroup v1)
	@$(GO) test -count=1 -timeout 15m ./test/docs -update

.PHONY: fuzz
fuzz: need-go ## every fuzz target for FUZZTIME each
	@$(GO) list ./... | while read -r pkg; do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; done; done

.PHONY: release
release: need-go ## dist/: static binaries for linux amd64 and arm64, with checksums
	@rm -rf dist && mkdir -p dist
	@for arch in amd64 arm64; do \
	  name=unthrottle-$(VERSION)-linux-$$arch; mkdir -p dist/$$name; \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o dist/$$name/unthrottle ./cmd/unthrottle; \
	  cp LICENSE README.md CHANGELOG.md dist/$$name/; \
	  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='@0' -C dist -czf dist/$$name.tar.gz $$name; rm -r dist/$$name; done
	@cd dist && sha256sum *.tar.gz > SHA256SUMS && cat SHA256SUMS
