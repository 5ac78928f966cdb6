package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/bugreport"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
	"github.com/unthrottle/unthrottle/internal/ui/outfile"
	view "github.com/unthrottle/unthrottle/internal/ui/report/check"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
)

// bugReport are the flags of the command.
type bugReport struct {
	write        writeFlags
	out          output
	file, config string
	names, yes   bool
}

func newBugReport() *cobra.Command {
	var b bugReport
	cmd := &cobra.Command{
		Use:     "bug-report",
		GroupID: groupLook,
		Short:   "Collect what is needed to help, without what is private",
		Long: `Collect what is needed to help with a problem into one file: version, kernel,
cgroups, the output of check, the containers' limits, the agent's configuration,
the last records of the journal, and the agent's last warnings and errors.

Command lines and environments are never read. Names of containers and cgroups
are hashed unless --names is given. Commands, labels and addresses in the
configuration are left out, and so are users.

Everything is shown before it is written. Nothing is sent.`,
		Example: `  sudo unthrottle bug-report                            show it, ask, write it
  sudo unthrottle bug-report --yes --file report.tar.gz`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := rejectEmptyFlags(cmd, "file", "config", "state-dir"); err != nil {
				return err
			}
			return b.run(cmd)
		},
	}
	b.write.addStateDir(cmd)
	b.out.add(cmd)
	shareSwitch(cmd, &b.yes, "yes", "; it is shown all the same")
	cmd.Flags().StringVar(&b.file, "file", "", "the `ARCHIVE` to write (default unthrottle-bug-report-TIME.tar.gz)")
	shareString(cmd, &b.config, "config", defaultConfig, "")
	cmd.Flags().BoolVar(&b.names, "names", false, "keep the names of containers and cgroups")
	return cmd
}

func (b bugReport) run(cmd *cobra.Command) error {
	now := time.Now().UTC()
	folder := "unthrottle-bug-report-" + now.Format("20060102-150405")
	if b.file == "" {
		b.file = folder + ".tar.gz"
	}
	files := b.collect(cmd.Context())
	if err := b.show(cmd.OutOrStdout(), files); err != nil {
		return err
	}
	if !b.yes {
		if !terminal.Is(os.Stdin) {
			say("nothing was written: read the above, then give --yes")
			return nil
		}
		yes, err := terminal.Ask(cmd.Context(), os.Stdin, os.Stderr, "write this to "+b.file+"?")
		if err != nil {
			return err
		}
		if !yes {
			say("nothing was written")
			return nil
		}
	}
	file, err := outfile.Create(b.file)
	if err != nil {
		return err
	}
	if err := file.Chmod(0o600); err != nil {
		return errors.Join(err, file.End(false))
	}
	if err := file.WriteAll(func(w io.Writer) error { return bugreport.Pack(w, folder, files, now) }); err != nil {
		return err
	}
	say("written to %s; nothing was sent", b.file)
	return nil
}

// bugReportDocument is the report as JSON.
type bugReportDocument struct {
	Files []bugreport.File `json:"files"`
}

// show prints the report, so that it is read before it is sent.
func (b bugReport) show(w io.Writer, files []bugreport.File) error {
	if b.out.json() {
		return jsonout.Write(w, "bug_report", bugReportDocument{files})
	}
	return bugreport.Show(w, files)
}

// Bounds of a report.
const (
	reportedRecords    = 200
	reportedLines      = 100
	reportedContainers = 2000
	// logPatience bounds how long journalctl may take.
	logPatience = 20 * time.Second
)

// collect makes the files. What cannot be read is said in its place: a report is of use without it.
func (b bugReport) collect(ctx context.Context) []bugreport.File {
	var all []container.Container
	h, err := openCgroups()
	if err == nil {
		all, err = list(h, "")
	}
	journalled, journalErr := os.ReadFile(journal.File(b.write.stateDir))
	names := append(privateNames(all), bugreport.JournalNames(journalled)...)
	r := bugreport.NewRedactor(fmt.Sprintf("%x", rand.Uint64()), names, b.names)
	unread := func(err error) string { return "not read: " + r.Text(err.Error()) + "\n" }
	containers := ""
	if err != nil {
		containers = unread(err)
	} else {
		containers = containerLines(h, all, r)
	}
	checked, checkedJSON := b.check(r)
	config := ""
	if text, err := infile.ReadAll(ctx, b.config, nil, maxRead); err != nil {
		config = unread(err)
	} else {
		config = r.Config(text)
	}
	records := ""
	if journalErr != nil {
		records = unread(journalErr)
	} else {
		records = r.Journal(journalled, reportedRecords)
	}
	log, err := agentLog(ctx)
	if err != nil {
		log = unread(err)
	}
	files := []bugreport.File{
		{Name: "version.txt", Text: versionLines(ctx)},
		{Name: "check.txt", Text: checked},
		{Name: "check.json", Text: checkedJSON},
		{Name: "containers.jsonl", Text: containers},
		{Name: "config.yaml", Text: config},
		{Name: "state.txt", Text: r.Text(stateLines(b.write.stateDir))},
		{Name: "journal.jsonl", Text: records, NewestLast: true},
		{Name: "agent.log", Text: r.Log(log), NewestLast: true},
	}
	for i := range files {
		files[i] = files[i].Bounded()
	}
	return files
}

// privateNames are the names that texts must not have.
func privateNames(containers []container.Container) []string {
	var names []string
	for _, c := range containers {
		names = append(names, c.Name, c.Pod, c.Namespace, c.ContainerName, c.ID, c.PodUID, c.Unit)
		names = append(names, strings.Split(c.Group.Path, "/")...)
		if len(c.ID) > 12 {
			names = append(names, c.ID[:12])
		}
	}
	host, _ := os.Hostname()
	for _, of := range []string{"SUDO_USER", "USER", "LOGNAME"} {
		if user := os.Getenv(of); user != "root" { // a word of many messages, and no secret
			names = append(names, user)
		}
	}
	return append(names, host)
}

func versionLines(ctx context.Context) string {
	var out strings.Builder
	fmt.Fprint(&out, thisBuild())
	if text, err := infile.ReadAll(ctx, "/etc/os-release", nil, maxRead); err == nil {
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "PRETTY_NAME=") {
				out.WriteString(line)
			}
		}
	}
	return out.String()
}

func (b bugReport) check(r *bugreport.Redactor) (text, asJSON string) {
	report, err := checkHost(b.write.stateDir)
	if err != nil {
		why := r.Text(err.Error()) + "\n"
		return why, why
	}
	for i := range report.Can {
		report.Can[i].Why = r.Text(report.Can[i].Why)
	}
	for i := range report.Missing {
		report.Missing[i].Way = r.Text(report.Missing[i].Way)
	}
	for i := range report.Managers {
		report.Managers[i].Evidence = r.Text(report.Managers[i].Evidence)
	}
	write := func(to func(io.Writer, features.Report) error) string {
		var out bytes.Buffer
		if err := to(&out, report); err != nil {
			return err.Error() + "\n"
		}
		return out.String()
	}
	return write(func(w io.Writer, r features.Report) error { return view.Write(w, r, page.Style{ASCII: true}) }),
		write(func(w io.Writer, r features.Report) error { return jsonout.Write(w, "check", r) })
}

// containerLines has a line of JSON per container: its kind and limit under a hashed path.
func containerLines(h *cgroup.Host, containers []container.Container, r *bugreport.Redactor) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	for i, c := range containers {
		if i == reportedContainers {
			fmt.Fprintf(&out, "{\"more\": %d}\n", len(containers)-i)
			break
		}
		line := struct {
			Path    string   `json:"path"`
			Runtime string   `json:"runtime"`
			Limit   *float64 `json:"limit_cpus"`
			Period  *float64 `json:"period_ms"`
		}{Path: r.Path(text.EscapePath(c.Group.Path)), Runtime: c.Runtime}
		if limit, err := cgroup.ReadLimit(h, c.Group.Path); err == nil && limit.Quota > 0 && limit.Period > 0 {
			cpus, period := float64(limit.Quota)/float64(limit.Period), limit.Period.Seconds()*1e3
			line.Limit, line.Period = &cpus, &period
		}
		if err := e.Encode(line); err != nil {
			return err.Error()
		}
	}
	return out.String()
}

// stateLines says what the state directory holds; the names of recordings are of containers, and are counted only.
func stateLines(dir string) string {
	var out strings.Builder
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "not read: " + err.Error() + "\n"
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			continue
		}
		if !entry.IsDir() {
			fmt.Fprintf(&out, "%s %s %d bytes\n", info.Mode(), entry.Name(), info.Size())
			continue
		}
		count, bytes := 0, int64(0)
		_ = filepath.WalkDir(filepath.Join(dir, entry.Name()), func(_ string, file fs.DirEntry, err error) error {
			if err != nil || file.IsDir() {
				return nil
			}
			if info, err := file.Info(); err == nil {
				count, bytes = count+1, bytes+info.Size()
			}
			return nil
		})
		fmt.Fprintf(&out, "%s %s: %d files, %d bytes\n", info.Mode(), entry.Name(), count, bytes)
	}
	return out.String()
}

// agentLog is the last warnings and errors of the agent's service.
func agentLog(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "journalctl", "--unit", "unthrottle.service", "--lines", "5000", "--output",
		"cat", "--no-pager", "--quiet").Output()
	if err != nil {
		return "", fmt.Errorf("journalctl: %w", err)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "level=INFO") && !strings.Contains(line, "level=DEBUG") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-reportedLines):], ""), nil
}

// maxRead bounds a file that is read whole.
const maxRead = 1 << 20
