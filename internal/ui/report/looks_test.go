package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// widths of the terminals that each view is written for.
var widths = []int{40, 80, 120}

// TestEveryViewFits writes every view at each width. No line is wider, unless it is one word; in a locale without other
// characters all is ASCII; colours come only where they are asked for, and say nothing that the text does not. What is
// written is in testdata; UPDATE_GOLDEN=1 writes it anew.
func TestEveryViewFits(t *testing.T) {
	for name, write := range examples() {
		t.Run(name, func(t *testing.T) {
			var golden strings.Builder
			for _, width := range widths {
				plain := written(t, write, page.Style{Width: width})
				fits(t, plain, width)
				ascii := written(t, write, page.Style{Width: width, ASCII: true})
				fits(t, ascii, width)
				if strings.ContainsFunc(ascii, func(r rune) bool { return r > '~' }) {
					t.Errorf("%d columns: not only ASCII:\n%s", width, ascii)
				}
				if strings.Contains(plain+ascii, "\x1b") {
					t.Errorf("%d columns: colours without being asked:\n%q", width, plain)
				}
				if coloured := written(t, write, page.Style{Width: width, Color: true}); uncoloured(coloured) != plain {
					t.Errorf("%d columns: with colours it is another text: %s", width, cmp.Diff(plain, uncoloured(coloured)))
				}
				fmt.Fprintf(&golden, "== %d columns\n%s", width, plain)
			}
			same(t, filepath.Join("testdata", name+".txt"), golden.String())
		})
	}
}

func written(t *testing.T, write view, style page.Style) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, style); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// longestLabel is the width of what stands before a word that is too wide for a line: "wrote    ", "  1. ".
const longestLabel = 12

// fits fails where a line is wider than the terminal, unless a single word is, with its label.
func fits(t *testing.T, s string, width int) {
	t.Helper()
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, "\n")
		widest := 0
		for _, word := range strings.Fields(line) {
			widest = max(widest, text.Width(word))
		}
		if text.Width(line) > width && widest < width-longestLabel {
			t.Errorf("%d columns: %d wide: %q", width, text.Width(line), line)
		}
	}
}

// uncoloured takes the colours out.
func uncoloured(s string) string {
	for _, code := range []string{page.Bold, page.Red, page.Amber, page.Green, page.Plain} {
		s = strings.ReplaceAll(s, code, "")
	}
	return s
}

// same fails unless the file has that text.
func same(t *testing.T, name, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("-want +got, UPDATE_GOLDEN=1 writes it anew:\n%s", d)
	}
}
