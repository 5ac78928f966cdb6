package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// maxCompleted bounds how many names a completion lists.
const maxCompleted = 1000

// addCompletions tells each command what completes its arguments and flags.
func addCompletions(root *cobra.Command) {
	for _, name := range []string{"apply", "fix", "policy", "runtimes"} {
		commandOf(root, name).ValidArgsFunction = completeTargets(cobra.ShellCompDirectiveNoFileComp)
	}
	for _, name := range []string{"explain", "forecast"} { // a recording is a file
		commandOf(root, name).ValidArgsFunction = completeTargets(cobra.ShellCompDirectiveDefault)
	}
	commandOf(root, "restore").ValidArgsFunction = completeInForce
	commandOf(root, "simulate").ValidArgsFunction = cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)
	for _, name := range []string{"ls", "top", "check", "inside", "look", "topology", "status", "version", "demo", "defrag",
		"agent", "place", "bench latency", "bench fibtest", "bench service"} {
		commandOf(root, name).ValidArgsFunction = cobra.NoFileCompletions
	}
	root.InitDefaultCompletionCmd()
	shells := commandOf(root, "completion")
	shells.Args = subcommandsOnly
	shells.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	walkCommands(root, func(cmd *cobra.Command) {
		for _, flag := range []string{"below", "parent", "scope", "lift-below"} {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, completeCgroups)
			}
		}
		for flag, ext := range map[string]string{"config": "yaml", "containers": "yaml", "topology": "json",
			"current": "json", "html": "html", "pods": "json"} {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.MarkFlagFilename(flag, ext)
			}
		}
		for _, flag := range []string{"state-dir", "flight-dir", "sysfs", "dir"} {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.MarkFlagDirname(flag)
			}
		}
		completeFlags(cmd)
	})
}

// walkCommands calls f for a command and all below it.
func walkCommands(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		walkCommands(c, f)
	}
}

// completeTargets completes names and paths of containers, with what else follows from the directive.
func completeTargets(directive cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return containerNames(begun), directive
	}
}

// containerNames are the names of containers here that begin so, and the paths where one begins with a slash.
func containerNames(begun string) []string {
	h, err := openCgroups()
	if err != nil {
		return nil
	}
	containers, err := list(h, "")
	if err != nil {
		return nil
	}
	names := map[string]bool{}
	for _, c := range containers {
		for _, name := range []string{c.Name, text.EscapePath(c.Group.Path)} {
			if strings.HasPrefix(name, begun) && (strings.HasPrefix(begun, "/") || name == c.Name) {
				names[name] = true
			}
		}
	}
	return bounded(slices.Sorted(maps.Keys(names)))
}

func bounded(names []string) []string { return names[:min(len(names), maxCompleted)] }

// completeInForce completes what has something in force.
func completeInForce(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	dir := cmd.Flags().Lookup("state-dir").Value.String()
	kept, err := journal.Load(dir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := map[string]bool{}
	for _, f := range kept.Open() {
		for _, name := range []string{f.Name, text.EscapePath(string(f.Target))} {
			if name != "" && strings.HasPrefix(name, begun) {
				names[name] = true
			}
		}
	}
	return bounded(slices.Sorted(maps.Keys(names))), cobra.ShellCompDirectiveNoFileComp
}

// completeCgroups completes paths of cgroups.
func completeCgroups(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	if begun == "" {
		begun = "/"
	}
	return containerNames(begun), cobra.ShellCompDirectiveNoFileComp
}
