package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the module's top folder, seen from here.
const root = "../.."

const (
	fence  = "```"
	prompt = "$ "
)

// block is a fenced block of a page that shows a command.
type block struct {
	page  string   // below the module's top
	from  int      // index of its first line after the fence
	lines []string // between the fences
}

// command is what is shown first, without the prompt.
func (b block) command() string { return strings.TrimPrefix(b.lines[0], prompt) }

// output is what stands below the commands.
func (b block) output() []string {
	return slices.Clone(b.lines[b.commands():])
}

// commands counts the lines at the top that are commands.
func (b block) commands() int {
	n := slices.IndexFunc(b.lines, func(line string) bool { return !strings.HasPrefix(line, prompt) })
	if n < 0 {
		return len(b.lines)
	}
	return n
}

// blocksOf finds the blocks of a page that begin with a command.
func blocksOf(page, text string) []block {
	var found []block
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], fence) {
			continue
		}
		end := i + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], fence) {
			end++
		}
		if i+1 < end && strings.HasPrefix(lines[i+1], prompt) {
			found = append(found, block{page, i + 1, lines[i+1 : end]})
		}
		i = end
	}
	return found
}

// pages are README.md and every page below docs.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir // what the tree does not keep
		}
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".md") {
			rel, _ := filepath.Rel(root, path)
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// blocks are the blocks of a page.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return blocksOf(page, string(text))
}

// find returns the block of a row.
func find(t *testing.T, r row) block {
	t.Helper()
	all := blocks(t, r.page)
	i := slices.IndexFunc(all, func(b block) bool { return b.command() == r.command })
	if i < 0 {
		t.Fatalf("%s shows no block that begins with %q: take the row out of the table, or mend the page", r.page, prompt+r.command)
	}
	return all[i]
}

// rewrite gives a block of a page other output.
func rewrite(t *testing.T, b block, output []string) {
	t.Helper()
	name := filepath.Join(root, b.page)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	from := b.from + b.commands()
	lines = slices.Concat(lines[:from], output, lines[b.from+len(b.lines):])
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBlocksOf(t *testing.T) {
	text := "a\n```\n$ one\nout\n```\n```sh\n$ two\n$ three\n```\n```\nno command\n$ four\n```\n```\n$ cut off"
	var got []string
	for _, b := range blocksOf("p", text) {
		got = append(got, fmt.Sprintf("%d %s %d %q", b.from, b.command(), b.commands(), b.output()))
	}
	want := []string{`2 one 1 ["out"]`, `6 two 2 []`, `14 cut off 1 []`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
