package results

import (
	"fmt"
	"io"
	"strings"
)

// Print writes a run the way `go test` does: output of failures, and one closing line for each package.
func (r *Run) Print(w io.Writer) {
	for _, p := range r.Packages {
		p.Print(w)
	}
}

// Print writes the package's failures and its closing line.
func (p *Package) Print(w io.Writer) {
	fmt.Fprint(w, p.Build)
	if p.Status == Fail || p.Status == Unend {
		for _, name := range p.TestNames() {
			if t := p.Tests[name]; t.Status == Fail || t.Status == Unend {
				fmt.Fprint(w, withoutFraming(t.Output))
			}
		}
		fmt.Fprint(w, withoutVerdict(p.Output))
	}
	switch {
	case p.Status == Pass && len(p.Tests) == 0:
		fmt.Fprintf(w, "ok  \t%s\t%.3fs [no tests to run]\n", p.Name, p.ElapsedSec)
	case p.Status == Pass:
		fmt.Fprintf(w, "ok  \t%s\t%.3fs\n", p.Name, p.ElapsedSec)
	case p.Status == Skip:
		fmt.Fprintf(w, "?   \t%s\t[no test files]\n", p.Name)
	case p.Status == Unend:
		fmt.Fprintf(w, "FAIL\t%s\t[did not end]\n", p.Name)
	case p.Build != "":
		fmt.Fprintf(w, "FAIL\t%s [build failed]\n", p.Name)
	default:
		fmt.Fprintf(w, "FAIL\t%s\t%.3fs\n", p.Name, p.ElapsedSec)
	}
}

// withoutFraming drops the lines by which -v reports its progress.
func withoutFraming(output string) string {
	return keepLines(output, func(line string) bool {
		for _, mark := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME "} {
			if strings.HasPrefix(line, mark) {
				return false
			}
		}
		return true
	})
}

// withoutVerdict drops the closing lines, because Print writes its own.
func withoutVerdict(output string) string {
	return keepLines(output, func(line string) bool {
		word := strings.TrimSpace(line)
		return word != "PASS" && word != "FAIL" && !strings.HasPrefix(line, "ok  \t") && !strings.HasPrefix(line, "FAIL\t")
	})
}

func keepLines(text string, keep func(string) bool) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if keep(strings.TrimSuffix(line, "\n")) {
			b.WriteString(line)
		}
	}
	return b.String()
}
