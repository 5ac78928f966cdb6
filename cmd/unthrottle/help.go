package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// newHelp is the help command. Unlike the library's own it refuses what it does not know.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:               "help [COMMAND]",
		Short:             "Show the help of a command",
		ValidArgsFunction: completeCommands,
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd, root, strings.Join(args, " "), args[len(args)-max(len(rest), 1)])
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// Bounds of the width of a help, in columns.
const minHelpWidth, maxHelpWidth = 60, 110

// wrapFlags has a template of help fit its flags to a width; the library lets a terminal break their lines.
func wrapFlags(template string, columns int) string {
	wrapped := fmt.Sprintf(".FlagUsagesWrapped %d ", min(maxHelpWidth, max(minHelpWidth, columns)))
	return strings.ReplaceAll(template, ".FlagUsages ", wrapped)
}

// unknownCommand says which commands there are. parent is the last one that is known, nil for none.
func unknownCommand(parent, root *cobra.Command, called, word string) error {
	if parent == nil {
		parent = root
	}
	meant := ""
	parent.SuggestionsMinimumDistance = 2
	if near := parent.SuggestionsFor(word); len(near) > 0 {
		meant = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q%s\nsee '%s --help'", called, meant, parent.CommandPath())
}

// subcommandsOnly is for a command that only groups others.
func subcommandsOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	called := args[0]
	if cmd.HasParent() {
		called = cmd.Name() + " " + called
	}
	return unknownCommand(cmd, cmd.Root(), called, args[0])
}

// completeCommands completes names of commands.
func completeCommands(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	at, _, err := cmd.Root().Find(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, c := range at.Commands() {
		if !c.Hidden {
			names = append(names, c.Name()+"\t"+c.Short)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
