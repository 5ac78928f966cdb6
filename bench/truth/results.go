package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// A case that was measured to its end is a result: a file in the tree, so that services measured on different days make
// one page. Recordings and cases under way stay in the cache.

// earlierHeading begins what a page has of services without a result, and earlierShort the sums of that time.
const (
	earlierHeading = "## Measured before results were kept"
	earlierShort   = "## In short, before results were kept"
)

// withEarlier adds to a page what an earlier page says of services without a result: their sections, and its sums. has
// tells whether a service has a result. An earlier page without such services adds nothing.
//
// A page that withEarlier made is an earlier page of the next one: its sums are those of the first page.
func withEarlier(page, earlier string, has func(name string) bool) string {
	var names []string
	var sectionsLeft strings.Builder
	short := ""
	for _, s := range sections(earlier) {
		name, is := serviceOf(s)
		switch {
		case is && !has(name):
			names = append(names, name)
			sectionsLeft.WriteString("\n" + s)
		case strings.HasPrefix(s, earlierShort+"\n"):
			short = s
		case short == "" && strings.HasPrefix(s, "## In short\n"):
			short = earlierShort + strings.TrimPrefix(s, "## In short")
		}
	}
	if len(names) == 0 {
		return page
	}
	slices.Sort(names)
	page += fmt.Sprintf("\n%s\n\nNot measured since: %s.\nTheir sections below are those of an earlier page, each with its date. The tables above lack them.\n",
		earlierHeading, "`"+strings.Join(names, "`, `")+"`")
	if short != "" {
		page += "\n" + short
	}
	return page + sectionsLeft.String()
}

// sections splits a page before each heading of the second level; what precedes the first is left out. Each ends with one
// line feed.
func sections(page string) []string {
	var all []string
	for i, s := range strings.Split("\n"+page, "\n## ") {
		if i > 0 {
			all = append(all, "## "+strings.TrimRight(s, "\n")+"\n")
		}
	}
	return all
}

// serviceOf returns the service that a section is about; false: it is about none.
func serviceOf(section string) (name string, is bool) {
	rest, is := strings.CutPrefix(section, "## `")
	if !is {
		return "", false
	}
	name, _, is = strings.Cut(rest, "`")
	return name, is
}

// measuredAt is when and with which program a case was measured, for a table.
func (k *caseRun) measuredAt() string {
	if k.Commit == "" {
		return k.Day()
	}
	return k.Day() + " " + text.Shown(k.Commit)
}
