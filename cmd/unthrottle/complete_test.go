package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// completed are the words that the shell is offered, and the directive.
func completed(t *testing.T, args ...string) (words []string, directive string) {
	t.Helper()
	out, err := called(append([]string{cobra.ShellCompRequestCmd}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if d, ok := strings.CutPrefix(line, ":"); ok {
			return words, d
		}
		word, _, _ := strings.Cut(line, "\t")
		words = append(words, word)
	}
	return words, ""
}

func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"apply x --remedy ", "burst"},
		{"fix x --remedy b", "burst"},
		{"ls -o ", "wide"},
		{"", "version"},
		{"help bench ", "service"},
		{"apply x --class ", "hybrid"},
		{"fix x --via s", "sched_ext"},
		{"bench service --shape ", "mixed"},
		{"bench service --remedies quota,", "quota,burst"},
		{"fix x --may ", "raise"},
		{"place --order ", "spans"},
	} {
		words, _ := completed(t, strings.Split(c.args, " ")...)
		if !slices.Contains(words, c.want) {
			t.Errorf("%q offers %v, want %s", c.args, words, c.want)
		}
	}
	if words, d := completed(t, "simulate", ""); !slices.Contains(words, "yaml") || d != "8" { // ShellCompDirectiveFilterFileExt
		t.Errorf("simulate offers %v, directive %s", words, d)
	}
	if words, _ := completed(t, "bench", "service", "--remedies", "quota,"); slices.Contains(words, "quota,quota") {
		t.Errorf("quota is offered twice: %v", words)
	}
	for _, args := range [][]string{{"fix", "x", "--slo", ""}, {"ls", "--for", ""}, {"status", "--limit", ""},
		{"bench", "service", "--url", ""}} {
		if words, d := completed(t, args...); len(words) > 0 || d != "4" { // ShellCompDirectiveNoFileComp
			t.Errorf("%v offers %v, directive %s: no file is wanted there", args, words, d)
		}
	}
	for args, want := range map[string]string{ // ShellCompDirectiveDefault, ShellCompDirectiveFilterFileExt, ShellCompDirectiveFilterDirs
		"explain x --record ": "0", "agent --answers ": "0", "agent --pods ": "8", "spans x --add-to ": "0", "export --dir ": "16",
	} {
		if _, d := completed(t, strings.Split(args, " ")...); d != want {
			t.Errorf("%q: directive %s, want %s: a file or folder is wanted there", args, d, want)
		}
	}
	if out, err := called("help", "all"); err != nil || !strings.Contains(out, "completion") {
		t.Errorf("completion is not shown: %v", err)
	}
}

// Each command has a manual page without anything of this machine. UNTHROTTLE_MAN names the folder that they are
// written to.
func TestManualPages(t *testing.T) {
	dir := os.Getenv("UNTHROTTLE_MAN")
	if dir == "" {
		dir = t.TempDir()
	}
	root := newRoot()
	root.DisableAutoGenTag = true
	walkCommands(root, func(cmd *cobra.Command) {
		cmd.DisableAutoGenTag = true
		// The folders of root, not those of the user who builds the pages.
		for name, dir := range map[string]string{"state-dir": systemStateDir, "flight-dir": filepath.Join(systemStateDir, flightDir)} {
			if f := cmd.Flags().Lookup(name); f != nil {
				f.DefValue = dir
			}
		}
	})
	header := &doc.GenManHeader{Section: "1", Source: "unthrottle", Manual: "unthrottle manual"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		t.Fatal(err)
	}
	walk(root, func(cmd *cobra.Command) {
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil || !bytes.Contains(page, []byte(".SH EXAMPLE")) {
			t.Errorf("%s: no page with examples: %v", cmd.CommandPath(), err)
		}
	})
}
