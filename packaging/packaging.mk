# Installing and packaging. `make install` is the one list of what is installed and where; the tarballs, packages and
# images are made of what it installs.
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DIST ?= dist
# The time of the commit stands in archives, so that the same commit gives the same bytes.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
# A package's version starts with a digit: v1.2.3 is 1.2.3, and a bare commit is older than any release.
PACKAGE_VERSION ?= $(shell v='$(VERSION)'; case "$$v" in v[0-9]*) echo "$${v\#v}" | sed 's/-/+/; s/-/./g';; *) echo "0.0.0~git$$(date -u -d @$(SOURCE_DATE_EPOCH) +%Y%m%d).$$v" | sed 's/-/./g';; esac)

# Where things are installed.
BINDIR = $(DESTDIR)$(PREFIX)/bin
UNITDIR = $(DESTDIR)$(PREFIX)/lib/systemd/system
SHARE = $(DESTDIR)$(PREFIX)/share
CONFIG = $(DESTDIR)$(SYSCONFDIR)/unthrottle.yaml
BASH_COMPLETION = $(SHARE)/bash-completion/completions/unthrottle
ZSH_COMPLETION = $(SHARE)/zsh/site-functions/_unthrottle
FISH_COMPLETION = $(SHARE)/fish/vendor_completions.d/unthrottle.fish
# PROGRAM is what `make install` installs; packages for another processor give another one.
PROGRAM ?= $(BIN)/unthrottle

.PHONY: install
install: build ## program, completions, systemd unit and sample configuration (PREFIX, DESTDIR)
	@install -d -m 755 $(BINDIR) $(UNITDIR) $(dir $(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION)) $(SHARE)/doc/unthrottle $(dir $(CONFIG))
	@install -m 755 $(PROGRAM) $(BINDIR)/unthrottle
	@$(BIN)/unthrottle completion bash | install -m 644 /dev/stdin $(BASH_COMPLETION)
	@$(BIN)/unthrottle completion zsh | install -m 644 /dev/stdin $(ZSH_COMPLETION)
	@$(BIN)/unthrottle completion fish | install -m 644 /dev/stdin $(FISH_COMPLETION)
	@sed 's#/usr/bin/#$(PREFIX)/bin/#; s#/etc/#$(SYSCONFDIR)/#' packaging/unthrottle.service | install -m 644 /dev/stdin $(UNITDIR)/unthrottle.service
	@install -m 644 LICENSE README.md CHANGELOG.md packaging/unthrottle.yaml $(SHARE)/doc/unthrottle/
	@if [ -e $(CONFIG) ]; then echo "$(CONFIG) stays as it is; a sample is in $(SHARE)/doc/unthrottle"; \
	  else install -m 644 packaging/unthrottle.yaml $(CONFIG); fi

.PHONY: uninstall
uninstall: ## removes what make install wrote; a changed configuration stays
	@if cmp -s $(CONFIG) $(SHARE)/doc/unthrottle/unthrottle.yaml; then rm $(CONFIG); \
	  elif [ -e $(CONFIG) ]; then echo "$(CONFIG) was changed and stays: remove it by hand"; fi
	@rm -f $(BINDIR)/unthrottle $(UNITDIR)/unthrottle.service $(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION)
	@rm -rf $(SHARE)/doc/unthrottle
