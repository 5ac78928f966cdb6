package docs

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A figure that a page takes from the results is one that they have. What is measured again changes the page of results
// alone: this names each line elsewhere that still has the older figure.
//
// A paragraph, a point of a list or a row of a table that links to a section of the results has no other figures than
// stand there. A row without such a link has those of the paragraph before its table.
func TestFiguresAreOfTheResults(t *testing.T) {
	compared := 0
	for _, page := range pages(t) {
		if page != results+"/README.md" && !slices.Contains([]string{".", "docs/concepts", "docs/howto"}, path.Dir(page)) {
			continue // the other pages have figures of their own beside such links
		}
		var before []string // sections of the paragraph before a table
		for _, unit := range units(prose(t, page)) {
			from := sections(t, page, unit)
			switch isRow := strings.HasPrefix(unit, "|"); {
			case !isRow:
				before = from
			case len(from) == 0:
				from = before
			}
			if len(from) == 0 {
				continue
			}
			known, shown := figures(strings.Join(from, "\n")), figures(unit)
			compared += len(shown)
			if shown = slices.DeleteFunc(shown, func(f string) bool { return slices.Contains(known, f) }); len(shown) > 0 {
				t.Errorf("%s: what this links to does not have %s: take today's figure, link to the section that has "+
					"it, or leave it out:\n%s",
					page, strings.Join(shown, ", "), unit)
			}
		}
	}
	if compared < 100 {
		t.Errorf("%d figures compared: mend the patterns of this test", compared)
	}
}

// A picture of figures has those of the page that shows it.
func TestFiguresOfPicturesAreOfTheirPages(t *testing.T) {
	const page, picture = "docs/concepts/remove-limits.md", "docs/concepts/pictures/remove-limits.svg"
	shown := regexp.MustCompile(`<(?:text|desc)[^>]*>([^<]*)<`).FindAllStringSubmatch(read(t, picture), -1)
	if len(shown) < 20 {
		t.Fatalf("%d texts found in %s: mend the pattern of this test", len(shown), picture)
	}
	known := figures(read(t, page))
	for _, text := range shown {
		for _, figure := range figures(text[1]) {
			if strings.Contains(figure, ".") && !slices.Contains(known, figure) {
				t.Errorf("%s: %q has %s, which %s does not", picture, text[1], figure, page)
			}
		}
	}
}

// results is where the pages of results are.
const results = "docs/results"

var (
	figure  = regexp.MustCompile(`(?:^|[^\p{L}\p{N}_.])(\d+(?:[.,]\d+)*)`)
	noProse = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)|<!--.*?-->")
)

// figures are the numbers of a text, without those in code, in the targets of links and in names such as p99.
func figures(text string) []string {
	var all []string
	for _, found := range figure.FindAllStringSubmatch(noProse.ReplaceAllString(text, " "), -1) {
		all = append(all, strings.ReplaceAll(found[1], ",", ""))
	}
	return all
}

// units are the paragraphs, headings, points of lists and rows of tables of a page.
func units(text string) []string {
	var all []string
	open := false // the last one goes on in the next line
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		begins := line != "" && strings.ContainsAny(line[:1], "|#") || strings.HasPrefix(line, "- ") || listPoint.MatchString(line)
		switch {
		case line == "":
			open = false
		case open && !begins:
			all[len(all)-1] += "\n" + line
		default:
			all = append(all, line)
			open = !strings.ContainsAny(line[:1], "|#")
		}
	}
	return all
}

var listPoint = regexp.MustCompile(`^\d+\. `)

// sections are those of the results that a text links to. A whole page has every figure: a link to one has none to offer.
func sections(t *testing.T, page, text string) []string {
	t.Helper()
	var all []string
	for _, found := range link.FindAllStringSubmatch(text, -1) {
		target, anchor, _ := strings.Cut(found[1], "#")
		if target = path.Join(path.Dir(page), target); path.Dir(target) == results {
			all = append(all, headings(t, target)[anchor])
		}
	}
	return all
}
