// Package incode says what to write into a program that is to have the project's library: a few lines for each language. A test
// compiles and runs them.
package incode

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// Language is one that has the library.
type Language struct {
	// Key is that of forecast.Forecast.Languages.
	Key  string `json:"-"`
	Name string `json:"language"`
	// Get is what the build needs, Imports are what the source needs, Lines is what to write: handler and work stand for the
	// program's own, classOf for a function that tells short requests (IO) from work (App).
	Get     string   `json:"get"`
	Imports []string `json:"imports"`
	Lines   []string `json:"lines"`
	// Page has a whole program.
	Page string `json:"page"`
}

// languages is the table.
var languages = []Language{
	{
		Key: forecast.LanguageGo, Name: "Go", Page: "docs/howto/in-your-go-code.md",
		Get:     "go get github.com/unthrottle/unthrottle/libs/go",
		Imports: []string{"github.com/unthrottle/unthrottle/libs/go/budget", "github.com/unthrottle/unthrottle/libs/go/shed"},
		Lines: []string{
			"handler = shed.Handler(budget.Process(), shed.Rule{Class: classOf}, handler)",
			"err := budget.Process().Do(ctx, budget.App, work)",
		},
	},
	{
		Key: forecast.LanguageJVM, Name: "Java", Page: "docs/howto/in-your-jvm-code.md",
		Get:     "io.github.unthrottle:unthrottle-budget",
		Imports: []string{"io.github.unthrottle.budget.CpuBudget", "io.github.unthrottle.budget.TaskClass"},
		Lines: []string{
			"CpuBudget budget = CpuBudget.ofProcess();",
			"budget.run(TaskClass.APP, work);",
			"Executor app = budget.executor(TaskClass.APP, threads);",
		},
	},
}

// Of returns what to write in languages; none of those that the table does not have.
func Of(keys []string) []Language {
	all := []Language{}
	for _, l := range languages {
		if slices.Contains(keys, l.Key) {
			all = append(all, l)
		}
	}
	return all
}

// All is what to write in every language that has the library.
func All() []Language { return slices.Clone(languages) }

// Text is what to write, in a line for each.
func (l Language) Text() []string {
	all := []string{fmt.Sprintf("To write in %s, see %s: get %s, import %s;", l.Name, l.Page, l.Get, strings.Join(l.Imports, " and "))}
	for _, line := range l.Lines {
		all = append(all, "    "+line)
	}
	return all
}
