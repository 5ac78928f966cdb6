package docs

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link matches the target of a link or picture of a page.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// A page is found from the index: docs/README.md links it, or the README.md of its folder, which docs/README.md links.
func TestTheIndexLeadsToEveryPage(t *testing.T) {
	const index = "docs/README.md"
	found := map[string]bool{index: true, "README.md": true}
	for _, target := range links(t, index) {
		found[target] = true
		if path.Base(target) == "README.md" && target != "README.md" {
			for _, further := range links(t, target) {
				found[further] = true
			}
		}
	}
	for _, page := range pages(t) {
		if !found[page] {
			t.Errorf("%s: neither %s nor the README.md of its folder links it", page, index)
		}
	}
}

// A link within the tree leads to a file, and to a heading of it.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		for _, of := range link.FindAllStringSubmatch(prose(t, page), -1) {
			u, err := url.Parse(of[1])
			if err != nil || u.Scheme != "" {
				continue
			}
			target := page
			if u.Path != "" {
				target = path.Join(path.Dir(page), u.Path)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: the link %s leads nowhere: %v", page, of[1], err)
			} else if u.Fragment != "" && strings.HasSuffix(target, ".md") && headings(t, target)[u.Fragment] == "" {
				t.Errorf("%s: the link %s leads to no heading of %s", page, of[1], target)
			}
		}
	}
}

// Each page of the concepts has a picture of its idea, and no picture is left over.
func TestEachConceptHasItsPicture(t *testing.T) {
	const folder = "docs/concepts"
	shown := map[string]bool{}
	for _, page := range pages(t) {
		pictures := 0
		for _, target := range links(t, page) {
			if path.Ext(target) == ".svg" {
				shown[target] = true
				pictures++
			}
		}
		switch name := path.Base(page); {
		case path.Dir(page) != folder, name == "README.md", name == "glossary.md":
		case pictures == 0:
			t.Errorf("%s has no picture", page)
		}
	}
	drawn, err := filepath.Glob(filepath.Join(root, folder, "pictures", "*.svg"))
	if err != nil || len(drawn) == 0 {
		t.Fatalf("%d pictures, %v", len(drawn), err)
	}
	for _, name := range drawn {
		if target := path.Join(folder, "pictures", filepath.Base(name)); !shown[target] {
			t.Errorf("no page shows %s", target)
		}
	}
}

// links are the files that a page links, below the module's top.
func links(t *testing.T, page string) []string {
	t.Helper()
	var all []string
	for _, of := range link.FindAllStringSubmatch(prose(t, page), -1) {
		target, _, _ := strings.Cut(of[1], "#")
		all = append(all, path.Join(path.Dir(page), target))
	}
	return all
}

// headings are the sections of a page by the anchors of their headings, by the rules of GitHub. A section has those below it.
func headings(t *testing.T, page string) map[string]string {
	t.Helper()
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	all := map[string]string{}
	var above []string // anchors of the headings above a line, by depth; "" where there is none
	for line := range strings.Lines(prose(t, page)) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			depth := len(line) - len(title)
			above = append(above, make([]string, depth)...)[:depth]
			title = link.ReplaceAllString(strings.TrimSpace(title), "")
			above[depth-1] = strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		}
		for _, anchor := range above {
			if anchor != "" {
				all[anchor] += line
			}
		}
	}
	return all
}

// prose is a page without its fenced blocks.
func prose(t *testing.T, page string) string {
	t.Helper()
	var kept strings.Builder
	fenced := false
	for line := range strings.Lines(read(t, page)) {
		if strings.HasPrefix(strings.TrimSpace(line), fence) {
			fenced = !fenced
		} else if !fenced {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
