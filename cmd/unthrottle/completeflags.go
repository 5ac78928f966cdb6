package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/placement"
)

// flagChoices are the words that a flag takes, by its name.
func flagChoices() map[string][]string {
	return map[string][]string{
		"remedy": kindNames(),
		"via":    remedy.Vias,
		"class":  {remedy.ClassExclusive, remedy.ClassHybrid},
		"output": {formatText, formatJSON, formatWide},
		"shape":  capacity.Shapes(),
	}
}

// flagLists are the words of flags that take several, with commas between.
func flagLists() map[string][]string {
	var order []string
	for _, objective := range placement.DefaultOrder() {
		order = append(order, string(objective))
	}
	return map[string][]string{
		"remedies": capacity.Variants(),
		"may":      strings.Split(policy.MayNames(), ", "),
		"order":    order,
	}
}

// anyFile are flags whose value may be any file: a recording, an archive, a program, a socket.
var anyFile = []string{"record", "file", "slo-command", "nri", "answers", "add-to"}

// completeFlags tells what completes the values of a command's flags. A flag whose value is no file offers none.
func completeFlags(cmd *cobra.Command) {
	words, lists := flagChoices(), flagLists()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_, has := cmd.GetFlagCompletionFunc(f.Name)
		if has || f.Hidden || f.NoOptDefVal != "" || len(f.Annotations) > 0 || slices.Contains(anyFile, f.Name) {
			return
		}
		complete := cobra.CompletionFunc(cobra.NoFileCompletions)
		if of := words[f.Name]; of != nil {
			complete = cobra.FixedCompletions(of, cobra.ShellCompDirectiveNoFileComp)
		} else if of := lists[f.Name]; of != nil {
			complete = completeList(of)
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, complete)
	})
}

// completeList completes words with commas between, each once.
func completeList(of []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		head := begun[:strings.LastIndexByte(begun, ',')+1]
		var offered []string
		for _, word := range of {
			if !slices.Contains(strings.Split(head, ","), word) {
				offered = append(offered, head+word)
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
