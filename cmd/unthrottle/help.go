package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// newHelp is the help command. Unlike the library's own it refuses what it does not know.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:               "help [COMMAND | all]",
		Short:             "Show the help of a command, or list all commands",
		ValidArgsFunction: completeCommands,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == allCommands {
				return root.Usage()
			}
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd, root, strings.Join(args, " "), args[len(args)-max(len(rest), 1)])
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// allCommands is what 'unthrottle help' is asked for to list every command.
const allCommands = "all"

// firstMonth are the commands that 'unthrottle' lists.
var firstMonth = []string{"ls", "top", "explain", "forecast", "check", "status", "fleet", "demo", "fix", "apply", "restore", "agent"}

// helpOfFew has the program's own help list few commands. Its usage still has all.
func helpOfFew(root *cobra.Command) {
	whole := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd == root {
			for _, c := range root.Commands() {
				if !c.Hidden && !slices.Contains(firstMonth, c.Name()) {
					c.Hidden = true
					defer func() { c.Hidden = false }()
				}
			}
		}
		whole(cmd, args)
	})
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
