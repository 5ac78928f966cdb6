# Installing and packaging. `make install` is the one list of what is installed and where; the tarballs, packages and
# images are made of what it installs.
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc

# Where things are installed.
BINDIR = $(DESTDIR)$(PREFIX)/bin
UNITDIR = $(DESTDIR)$(PREFIX)/lib/systemd/system
SHARE = $(DESTDIR)$(PREFIX)/share
CONFIG = $(DESTDIR)$(SYSCONFDIR)/unthrottle.yaml
BASH_COMPLETION = $(SHARE)/bash-completion/completions/unthrottle
ZSH_COMPLETION = $(SHARE)/zsh/site-functions/_unthrottle
FISH_COMPLETION = $(SHARE)/fish/vendor_completions.d/unthrottle.fish
MAN1 = $(SHARE)/man/man1
# PROGRAM is what `make install` installs; packages for another processor give another one.
PROGRAM ?= $(BIN)/unthrottle

##@ Use it
.PHONY: install
install: build man install-files ## program, manual pages, completions, systemd unit and sample configuration (PREFIX, DESTDIR)

# What install installs, from what is built already.
.PHONY: install-files
install-files:
	@install -d -m 755 $(BINDIR) $(UNITDIR) $(MAN1) $(dir $(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION)) $(SHARE)/doc/unthrottle $(dir $(CONFIG))
	@install -m 755 $(PROGRAM) $(BINDIR)/unthrottle
	@$(BIN)/unthrottle completion bash | install -m 644 /dev/stdin $(BASH_COMPLETION)
	@$(BIN)/unthrottle completion zsh | install -m 644 /dev/stdin $(ZSH_COMPLETION)
	@$(BIN)/unthrottle completion fish | install -m 644 /dev/stdin $(FISH_COMPLETION)
	@for page in $(MAN)/*.1; do gzip -9nc $$page | install -m 644 /dev/stdin $(MAN1)/$$(basename $$page).gz; done
	@sed 's#/usr/bin/#$(PREFIX)/bin/#; s#/etc/#$(SYSCONFDIR)/#' packaging/unthrottle.service | install -m 644 /dev/stdin $(UNITDIR)/unthrottle.service
	@install -m 644 LICENSE README.md CHANGELOG.md packaging/unthrottle.yaml $(SHARE)/doc/unthrottle/
	@if [ -e $(CONFIG) ]; then echo "$(CONFIG) stays as it is; a sample is in $(SHARE)/doc/unthrottle"; \
	  else install -m 644 packaging/unthrottle.yaml $(CONFIG); fi

.PHONY: install-fleet
install-fleet: fleet ## unthrottle-fleet beside it, for 'unthrottle fleet' (needs a C++ compiler)
	@install -d -m 755 $(BINDIR)
	@install -m 755 $(BIN)/unthrottle-fleet $(BINDIR)/unthrottle-fleet

.PHONY: uninstall
uninstall: ## removes what make install wrote; a changed configuration stays
	@if cmp -s $(CONFIG) $(SHARE)/doc/unthrottle/unthrottle.yaml; then rm $(CONFIG); \
	  elif [ -e $(CONFIG) ]; then echo "$(CONFIG) was changed and stays: remove it by hand"; fi
	@rm -f $(BINDIR)/unthrottle $(BINDIR)/unthrottle-fleet $(UNITDIR)/unthrottle.service $(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION) $(MAN1)/unthrottle.1.gz $(MAN1)/unthrottle-*.1.gz
	@rm -rf $(SHARE)/doc/unthrottle

# What the targets below build for, and where to.
ARCHS ?= amd64 arm64
DIST ?= dist
STAGE ?= .cache/stage
NFPM = $(GO) tool -modfile=tools/nfpm/go.mod nfpm
# The time of the commit stands in archives and packages, so that a commit gives the same bytes again.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
# A package's version starts with a digit. v1.2-3-gabc is 1.2+3.gabc; a bare commit is older than every release.
PACKAGE_VERSION ?= $(or $(shell sed -n '/^v[0-9]/{s/^v//; s/-/+/; s/-/./g; p}' <<< '$(VERSION)'),0.0.0~git$(shell date -u -d @$(SOURCE_DATE_EPOCH) +%Y%m%d.)$(subst -,.,$(VERSION)))

# Everything is made from what make install would install, once for each processor.
.PHONY: stage
stage: build man
	@mkdir -p $(DIST)
	@rm -rf $(STAGE)
	@for arch in $(ARCHS); do \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(STAGE)/program/$$arch/unthrottle ./cmd/unthrottle; \
	  $(MAKE) --no-print-directory -s install-files DESTDIR=$(STAGE)/$$arch PREFIX=/usr SYSCONFDIR=/etc PROGRAM=$(STAGE)/program/$$arch/unthrottle; done

# unthrottle-fleet needs a C++ compiler for each processor. Where one is missing it says so, and goes on.
NATIVE_ARCH = $(shell $(GO) env GOHOSTARCH)
TRIPLE_amd64 := x86_64-linux-gnu
TRIPLE_arm64 := aarch64-linux-gnu
FLEET_ARCHS = $(foreach arch,$(ARCHS),$(if $(or $(filter $(arch),$(NATIVE_ARCH)),$(shell command -v $(TRIPLE_$(arch))-g++)),$(arch)))
fleet-compiler = $(if $(filter $(1),$(NATIVE_ARCH)),,GOARCH=$(1) CC=$(TRIPLE_$(1))-gcc CXX=$(TRIPLE_$(1))-g++)
.PHONY: stage-fleet
stage-fleet: stage
	@$(foreach arch,$(filter-out $(FLEET_ARCHS),$(ARCHS)),echo "unthrottle-fleet for $(arch) is left out: apt-get install g++-$(TRIPLE_$(arch))" >&2;)
	@$(foreach arch,$(FLEET_ARCHS),$(call fleet-program,$(abspath $(STAGE))/program/$(arch)/unthrottle-fleet,$(call fleet-compiler,$(arch)));)

.PHONY: release
release: stage-fleet ## static tarballs for linux amd64 and arm64 in dist, of unthrottle-fleet too, with checksums
	@rm -f $(DIST)/*.tar.gz
	@for arch in $(FLEET_ARCHS); do name=unthrottle-fleet-$(VERSION)-linux-$$arch; to=$(STAGE)/$$name; mkdir -p $$to; \
	  cp $(STAGE)/program/$$arch/unthrottle-fleet LICENSE $$to/; \
	  $(call archive,$(STAGE),$$name,$$name); done
	@for arch in $(ARCHS); do name=unthrottle-$(VERSION)-linux-$$arch; from=$(STAGE)/$$arch; to=$(STAGE)/$$name; \
	  mkdir -p $$to/completions; \
	  cp $$from/usr/bin/unthrottle $$from/usr/share/doc/unthrottle/* $$from/usr/lib/systemd/system/unthrottle.service $$to/; \
	  cp $$from/usr/share/bash-completion/completions/unthrottle $$to/completions/unthrottle.bash; \
	  cp -r $$from/usr/share/man $$to/; \
	  cp $$from/usr/share/zsh/site-functions/_unthrottle $$from/usr/share/fish/vendor_completions.d/unthrottle.fish $$to/completions/; \
	  $(call archive,$(STAGE),$$name,$$name); done
	@$(checksums)

.PHONY: packages
packages: release ## the tarballs, and deb and rpm packages of both programs, in dist, with checksums
	@rm -f $(DIST)/*.deb $(DIST)/*.rpm
	@for arch in $(ARCHS); do for format in deb rpm; do \
	  ARCH=$$arch STAGE=$(STAGE)/$$arch PACKAGE_VERSION='$(PACKAGE_VERSION)' SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) \
	    $(NFPM) package --config packaging/nfpm.yaml --packager $$format --target $(DIST)/ > /dev/null; done; done
	@for arch in $(FLEET_ARCHS); do for format in deb rpm; do \
	  ARCH=$$arch PROGRAM=$(STAGE)/program/$$arch/unthrottle-fleet PACKAGE_VERSION='$(PACKAGE_VERSION)' SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) \
	    $(NFPM) package --config packaging/nfpm-fleet.yaml --packager $$format --target $(DIST)/ > /dev/null; done; done
	@$(checksums)

# The programs of the module kubernetes for one processor: $(call kubernetes-program,NAME,ARCH).
kubernetes-program = CGO_ENABLED=0 GOOS=linux GOARCH=$(2) $(GO) -C kubernetes build -trimpath -ldflags '-s -w' -o $(abspath $(STAGE))/program/$(2)/$(1) ./cmd/$(1)

# A static program as an image in DIST: $(call write-image,NAME,ARCH,PROGRAM).
write-image = $(GO) -C tools/image run . --name $(1) --arch $(2) --version '$(VERSION)' --epoch $(SOURCE_DATE_EPOCH) \
  --program $(3) --output $(abspath $(DIST))/$(1)-$(VERSION)-linux-$(2).oci.tar

# The image of the containers beside the agent is one of its own, so that the agent's has one program; so is that of the fleet's.
.PHONY: image
image: stage-fleet ## container images, of the agent, of what stands beside it in Kubernetes and of the fleet's program, for each processor: OCI layouts in tar files in dist
	@rm -f $(DIST)/*.oci.tar
	@for arch in $(ARCHS); do $(call kubernetes-program,unthrottle-kubernetes,$$arch); \
	  for name in unthrottle unthrottle-kubernetes unthrottle-fleet; do program=$(abspath $(STAGE))/program/$$arch/$$name; \
	    [ ! -e $$program ] || $(call write-image,$$name,$$arch,$$program); done; done
	@$(checksums)

# kube-scheduler's packages take a quarter of an hour of CPU time to build for each processor, so that `make image` leaves them out.
.PHONY: scheduler-image
scheduler-image: need-go ## the container image of unthrottle-scheduler for each processor, in dist (a quarter of an hour for the first build)
	@mkdir -p $(DIST)
	@for arch in $(ARCHS); do program=$(abspath $(STAGE))/program/$$arch/unthrottle-scheduler; \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$arch nice $(GO) -C kubernetes/scheduler build -trimpath -ldflags '-s -w' -o $$program ./cmd/unthrottle-scheduler && \
	  $(call write-image,unthrottle-scheduler,$$arch,$$program) || exit 1; done

# Where the archives of `make plugin` will be found.
PLUGIN_URL ?= https://github.com/unthrottle/unthrottle/releases/download/$(VERSION)
.PHONY: plugin
plugin: need-go ## kubectl unthrottle for each processor in dist, with checksums and a manifest for krew
	@mkdir -p $(DIST); rm -f $(DIST)/kubectl-unthrottle-*.tar.gz; cp packaging/krew.yaml $(DIST)/unthrottle.krew.yaml
	@sed -i 's#@VERSION@#$(VERSION)#' $(DIST)/unthrottle.krew.yaml
	@for arch in $(ARCHS); do name=kubectl-unthrottle-$(VERSION)-linux-$$arch; to=$(abspath $(STAGE))/$$name; mkdir -p $$to; \
	  $(call kubernetes-program,kubectl-unthrottle,$$arch); \
	  cp $(STAGE)/program/$$arch/kubectl-unthrottle kubernetes/cmd/kubectl-unthrottle/kubectl_complete-unthrottle LICENSE $$to/; \
	  $(call archive,$$to,.,$$name); \
	  sed "s#@ARCH@#$$arch#; s#@URI@#$(PLUGIN_URL)/$$name.tar.gz#; s#@SHA256@#$$(sha256sum < $(DIST)/$$name.tar.gz | cut -c1-64)#" packaging/krew-platform.yaml >> $(DIST)/unthrottle.krew.yaml; done
	@$(checksums)

# What is in a folder as an archive, the same bytes each time: $(call archive,FOLDER,WHAT,NAME).
archive = tar --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w --mtime=@$(SOURCE_DATE_EPOCH) -C $(1) -c $(2) | gzip -n > $(DIST)/$(3).tar.gz

# SHA256SUMS lists what is in DIST.
checksums = cd $(DIST) && sha256sum $$(ls | grep -v SHA256SUMS) > SHA256SUMS && cat SHA256SUMS
