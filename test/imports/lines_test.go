package imports

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// mostColumns is how wide a line of Go may be, a tab counted as four.
const mostColumns = 140

// unbreakable is what a line may be wider for: a long text, an address, a raw string.
var unbreakable = regexp.MustCompile("\"[^\"]{40,}\"|`|https?://|//go:|/.*\\(\\$")

// committed are the files that git has, by patterns; none: all.
func committed(t *testing.T, patterns ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", "../..", "ls-files", "-z"}, patterns...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// TestLinesAreShort holds the width of lines, so that two files can stand side by side. Generated files are left out.
func TestLinesAreShort(t *testing.T) {
	for _, name := range committed(t, "*.go") {
		if strings.Contains(name, "_bpfel.go") || strings.Contains(name, "zz_generated") || strings.HasSuffix(name, ".pb.go") {
			continue
		}
		file, err := os.Open(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		raw := false // in a raw string
		for n := 1; lines.Scan(); n++ {
			whole := raw || strings.HasSuffix(name, "example_test.go") // output is compared as it is
			raw = raw != (strings.Count(lines.Text(), "`")%2 == 1)
			text := strings.ReplaceAll(lines.Text(), "\t", "    ")
			if utf8.RuneCountInString(text) > mostColumns && !whole && !unbreakable.MatchString(text) {
				t.Errorf("%s:%d: more than %d columns: break it at a comma or an operator", name, n, mostColumns)
			}
		}
		if err := lines.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		file.Close()
	}
}
