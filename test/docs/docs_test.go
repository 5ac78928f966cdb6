package docs

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/load/provoke"
	"github.com/unthrottle/unthrottle/internal/load/workload"
)

var update = flag.Bool("update", false, "write fresh output into the pages")

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case provoke.ChildCommand:
			os.Exit(provoke.ChildMain())
		case workload.ChildCommand:
			os.Exit(workload.ChildMain())
		}
	}
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn) // a leftover in the temporary folder does no harm
	}
	os.Exit(code)
}

// A command that a page shows has a row, and each row has its block.
func TestEveryBlockHasARow(t *testing.T) {
	listed := map[[2]string]bool{}
	for _, r := range table {
		key := [2]string{r.page, r.command}
		if listed[key] {
			t.Errorf("%s: two rows for %q", r.page, r.command)
		}
		if listed[key] = true; (r.scene == "") == (r.elsewhere == "") {
			t.Errorf("%s: %q has to have a scene, or the reason why it has none", r.page, r.command)
		}
		find(t, r)
	}
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if !listed[[2]string{page, b.command()}] {
				t.Errorf("%s shows %q, which no row of the table in test/docs/table_test.go has: add one that says "+
					"how the output is made", page, prompt+b.command())
			}
		}
	}
}

// hold compares what was printed with what the pages show, or writes it into them.
// made is by command.
func hold(t *testing.T, scene string, made map[string]printed) {
	t.Helper()
	used := map[string]bool{}
	for _, r := range table {
		if r.scene != scene {
			continue
		}
		p, ok := made[r.command]
		if used[r.command] = true; !ok {
			t.Errorf("scene %s does not run %q, which %s shows", scene, r.command, r.page)
			continue
		}
		b := find(t, r)
		filled := r.width
		if r.byPage {
			filled = 0
		}
		paragraphs := p.unscoped(filled)
		if !r.firstCell {
			paragraphs = slices.DeleteFunc(paragraphs, func(line paragraph) bool { return stranger.MatchString(line.text) })
		}
		run := cut(t, paragraphs, r.parts)
		shown := fold(run, r.width)
		switch {
		case *update && len(shown) > 0:
			rewrite(t, b, shown)
		case r.exact && !slices.Equal(shown, b.output()):
			t.Errorf("%s: %q prints\n%s\n(make docs writes it into the page)", r.page, r.command, strings.Join(shown, "\n"))
		case !r.exact:
			if difference := differ(shape(unfold(b.output(), r.width), r), shape(run, r)); difference != "" {
				t.Errorf("%s: %q prints something of another shape (make docs writes it into the page):%s\nprinted:\n%s",
					r.page, r.command, difference, strings.Join(shown, "\n"))
			}
		}
	}
	for command := range made {
		if !used[command] {
			t.Errorf("scene %s runs %q, which no page shows", scene, command)
		}
	}
}
