package threadpool

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/reference/pools.md anew")

const page = "../../../docs/reference/pools.md"

// TestDocsAreFresh compares the tables of docs/reference/pools.md with the data. If it fails: go test ./internal/explain/threadpool -update
func TestDocsAreFresh(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for mark, table := range map[string]string{"runtimes": runtimesTable(knownOnce()), "pools": poolsTable(knownOnce())} {
		head, rest, ok := strings.Cut(want, "<!-- "+mark+" -->\n")
		_, tail, ok2 := strings.Cut(rest, "<!-- end -->")
		if !ok || !ok2 {
			t.Fatalf("%s has no marks around the table of %s", page, mark)
		}
		want = head + "<!-- " + mark + " -->\n" + table + "<!-- end -->" + tail
	}
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what pools.yaml says: go test ./internal/explain/threadpool -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func runtimesTable(table *Table) string {
	limits := []float64{0.5, 1.5, 2, 3.7}
	var b strings.Builder
	b.WriteString("| runtime |")
	for _, l := range limits {
		fmt.Fprintf(&b, " %v CPUs |", l)
	}
	b.WriteString(" no limit |\n|---|---|---|---|---|---|\n")
	for _, r := range table.runtimes {
		fmt.Fprintf(&b, "| %s |", r.Name+versions(r.Since, r.Until))
		for _, l := range append(limits, 0) {
			fmt.Fprintf(&b, " %d |", r.cpus(l, 8))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func poolsTable(table *Table) string {
	var b strings.Builder
	b.WriteString("| threads | pool of | setting | default | changed while it runs |\n|---|---|---|---|---|\n")
	for _, r := range table.rows {
		live := ""
		if r.Live {
			live = "yes"
			if r.LiveHow != "" {
				live = r.LiveHow
			}
		}
		settings := code(append([]string{r.Setting}, r.OtherSettings...))
		usual := r.Default
		if r.Formula != "" {
			usual = strings.TrimSuffix("`"+r.Formula+"`; "+r.Default, "; ")
		}
		if r.Unverified {
			usual += " (not checked)"
		}
		cells := []string{code(r.Names), r.Library + versions(r.Since, r.Until), settings, usual, live}
		b.WriteString("|")
		for _, c := range cells {
			b.WriteString(strings.TrimRight(" "+strings.ReplaceAll(c, "|", `\|`), " ") + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func code(words []string) string {
	var all []string
	for _, w := range words {
		if w != "" {
			all = append(all, "`"+w+"`")
		}
	}
	return strings.Join(all, " ")
}

func versions(since, until string) string {
	switch {
	case since != "" && until != "":
		return ", " + since + " to " + until
	case since != "":
		return ", since " + since
	case until != "":
		return ", until " + until
	}
	return ""
}
