package bugreport

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Redactor leaves private things out of texts. The zero value is not usable: see NewRedactor.
type Redactor struct {
	salt  string
	names *regexp.Regexp // nil: none are known
	open  bool
}

// maxNames bounds the names that are looked for in texts.
const maxNames = 20_000

// leftOut stands for a value that a report does not have.
const leftOut = "(left out)"

// NewRedactor makes one that hashes the names wherever they stand, with a salt of its report. With open, names of containers
// and cgroups are kept; commands, addresses and users are left out all the same.
func NewRedactor(salt string, names []string, open bool) *Redactor {
	names = slices.Clone(names)
	for i, n := range names {
		if !utf8.ValidString(n) { // as texts have it; a regular expression takes none of these bytes
			names[i] = text.EscapePath(n)
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return len(n) < 3 || known.MatchString(n) })
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	names = slices.Compact(names)
	names = names[:min(len(names), maxNames)]
	r := &Redactor{salt: salt, open: open}
	if len(names) > 0 {
		for i, n := range names {
			names[i] = regexp.QuoteMeta(n)
		}
		r.names = regexp.MustCompile(strings.Join(names, "|"))
	}
	return r
}

// Name hashes one name.
func (r *Redactor) Name(name string) string {
	if r.open || name == "" {
		return name
	}
	sum := sha256.Sum256([]byte(r.salt + "\x00" + name))
	return "h-" + hex.EncodeToString(sum[:4])
}

var (
	// known are components of paths that say nothing private.
	known = regexp.MustCompile(`^(|\.|/|system\.slice|user\.slice|machine\.slice|init\.scope|kubepods(\.slice)?|kubepods-(burstable|besteffort)\.slice|` +
		`burstable|besteffort|guaranteed|docker|crio|containerd|libpod_parent|lxc|cpu|cpuset|cpuacct|cpu,cpuacct|unified|` +
		`cpu\.(cfs_(quota|period|burst)_us|rt_(runtime|period)_us|stat(\.local)?|shares|max(\.burst)?|weight(\.nice)?|idle)|` +
		`cpuset\.(cpus|mems)(\.(effective|partition|exclusive))?|cpuacct\.usage|cgroup\.(procs|threads|subtree_control|controllers))$`)
	// kindOf is the end of a component that tells what it is.
	kindOf = regexp.MustCompile(`\.(slice|scope|service)$`)
	// absolute is an absolute path in a text.
	absolute = regexp.MustCompile(`/[^\s"'<>(){}|,;=]+`)
	// ours are paths that every host has, or that are ours.
	ours    = regexp.MustCompile(`^/(proc|sys|dev|boot)(/[^/]+){0,3}$|^(/etc/unthrottle\.yaml|/var/lib/unthrottle|/(usr|usr/local)/bin/unthrottle)(/|$|:)`)
	cgroups = "/sys/fs/cgroup"
	// address is what may be an IPv4 or IPv6 address.
	address = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b|[0-9a-fA-F]*(:[0-9a-fA-F]*){2,}(\.\d{1,3}){0,3}`)
	command = regexp.MustCompile(`slo command .*`)
)

// Path hashes the components of a cgroup path, but for those that every host has.
func (r *Redactor) Path(p string) string {
	if r.open {
		return p
	}
	parts := strings.Split(p, "/")
	for i, part := range parts {
		if !known.MatchString(part) {
			parts[i] = r.Name(part) + kindOf.FindString(part)
		}
	}
	return strings.Join(parts, "/")
}

// Text clears a text of known names, paths, addresses and slo commands.
func (r *Redactor) Text(text string) string {
	text = command.ReplaceAllStringFunc(text, func(found string) string {
		end := ""
		if strings.HasSuffix(found, `"`) {
			end = `"`
		}
		return "slo command " + leftOut + end
	})
	text = absolute.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.TrimRight(found, ":.")
		end := found[len(name):]
		switch under, cgroup := strings.CutPrefix(name, cgroups+"/"); {
		case cgroup:
			return path.Join(cgroups, r.Path(under)) + end
		case ours.MatchString(name):
			return found
		}
		return r.Path(name) + end
	})
	text = address.ReplaceAllStringFunc(text, withoutAddress)
	if r.names != nil && !r.open {
		text = r.names.ReplaceAllStringFunc(text, r.Name)
	}
	return text
}

// withoutAddress leaves an address out, but for one of this host or of any. A colon after it stays, and so does what is no
// address, such as a time of day.
func withoutAddress(found string) string {
	for _, of := range []string{found, strings.TrimSuffix(found, ":")} {
		if at, err := netip.ParseAddr(of); err == nil && !at.IsLoopback() && !at.IsUnspecified() {
			return "(address)" + found[len(of):]
		}
	}
	return found
}

// named are attributes of the agent's log whose values are names.
var named = regexp.MustCompile(`\b(container|pod|namespace|owner|user|file|cgroup|by|target)=("(?:[^"\\]|\\.)*"|\S+)`)

// Log clears lines of the agent's log.
func (r *Redactor) Log(lines string) string {
	var out strings.Builder
	for line := range strings.Lines(lines) {
		line = named.ReplaceAllStringFunc(line, func(found string) string {
			key, value, _ := strings.Cut(found, "=")
			value = strings.Trim(value, `"`)
			if strings.HasPrefix(value, "/") {
				return key + "=" + r.Path(value)
			}
			if value == "self" || value == "none" {
				return found
			}
			return key + "=" + r.Name(value)
		})
		text, end := strings.CutSuffix(line, "\n")
		out.WriteString(r.Text(text))
		if end {
			out.WriteByte('\n')
		}
	}
	return out.String()
}
