package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/irq/irqhost"
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy/schedhost"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd"
	"github.com/unthrottle/unthrottle/internal/podresize/sidecar"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/holder"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// writeFlags are the flags of every command that may write.
type writeFlags struct {
	scope, stateDir, liftBelow string
	verbose                    bool
}

func (f *writeFlags) add(cmd *cobra.Command) {
	shareString(cmd, &f.scope, "scope", "", "")
	f.addStateDir(cmd)
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "say more on standard error")
}

// addStateDir adds the flag of commands that read the journal.
func (f *writeFlags) addStateDir(cmd *cobra.Command) {
	shareString(cmd, &f.stateDir, "state-dir", defaultStateDir(), "")
}

// addLift adds the flag of commands that make plans.
func (f *writeFlags) addLift(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.liftBelow, "lift-below", "", "quotas of cgroups below this `PREFIX` may be lifted too, "+
		"where they would still bind (default: those below --scope)")
}

// mustExist refuses a --state-dir that is not there: to say that nothing is in force would be a guess. The default may be
// missing: then nothing was ever written from there.
func (f *writeFlags) mustExist(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("state-dir") || f.stateDir == "" {
		return nil
	}
	info, err := os.Stat(f.stateDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--state-dir %s: no such folder, so what is in force is not known: give the folder that "+
			"the writing command had, or leave it out for %s",
			text.Sanitize(f.stateDir, 0), defaultStateDir())
	case err != nil:
		return fmt.Errorf("--state-dir %w", err)
	case !info.IsDir():
		return fmt.Errorf("--state-dir %s: this is no folder", text.Sanitize(f.stateDir, 0))
	}
	return nil
}

// sayWhose says to a user other than root that what root has in force is not known here.
func (f *writeFlags) sayWhose(cmd *cobra.Command) {
	if note := f.whose(os.Geteuid(), cmd.Flags().Changed("state-dir")); note != "" {
		say("%s", note)
	}
}

// whose is what sayWhose says to a user; "": nothing. given: the user has named the state directory.
func (f *writeFlags) whose(uid int, given bool) string {
	if uid == 0 || given {
		return ""
	}
	return fmt.Sprintf("only what this user has in force, from %s; root's journal (%s) is for root to read",
		text.Sanitize(f.stateDir, 0), systemStateDir)
}

// defaultStateDir is the folder of the journal: the system's for root, else the user's.
func defaultStateDir() string {
	if os.Geteuid() == 0 {
		return systemStateDir
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "unthrottle")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state", "unthrottle")
	}
	return systemStateDir
}

// systemStateDir is root's folder of the journal.
const systemStateDir = "/var/lib/unthrottle"

// env opens what applying and restoring need; done closes it.
func (f *writeFlags) env(cmd *cobra.Command, h *cgroup.Host) (env apply.Env, done func(), err error) {
	ctx, command := cmd.Context(), cmd.Name()
	if err := rejectEmptyFlags(cmd, "scope", "state-dir", "lift-below"); err != nil {
		return apply.Env{}, nil, err
	}
	scope, err := cleanPrefix(h, "scope", f.scope)
	if err != nil {
		return apply.Env{}, nil, err
	}
	env, done, unasked, err := f.reading(ctx, h)
	if err != nil {
		return apply.Env{}, nil, err
	}
	env.Scope, env.By, env.Log, env.Undoing = scope, "unthrottle "+command+", "+callingUser(), f.log(), sayUndoing
	if unasked != nil {
		say("systemd cannot be asked (%v): settings are written directly, and a reload of systemd may undo them", unasked)
	}
	writing.Store(&env)
	return env, done, nil
}

// reading opens what the facts of a plan are read with; done closes it. unasked says why systemd, which runs, cannot be asked;
// nil: it can, or does not run.
func (f *writeFlags) reading(ctx context.Context, h *cgroup.Host) (env apply.Env, done func(), unasked, err error) {
	boot, err := apply.BootID("/proc")
	if err != nil {
		return apply.Env{}, nil, nil, err
	}
	env = apply.Env{
		FS:       h,
		StateDir: f.stateDir,
		BootID:   boot,
		Proc:     apply.NewProc("/proc"),
		IRQ:      irqhost.New("/proc"),
		Sched:    schedhost.New("/proc"),
		Width:    holder.New(f.stateDir),
		Pods:     sidecar.New(sidecar.Socket),
	}
	manager, err := systemd.Dial(ctx)
	if err != nil {
		if _, booted := os.Stat("/run/systemd/system"); booted == nil {
			unasked = err
		}
		return env, func() {}, unasked, nil
	}
	env.Systemd = manager
	return env, manager.Close, nil, nil
}

// levelInfo is the agent's level of logging; commands log warnings only.
const levelInfo = slog.LevelInfo

func (f *writeFlags) log() *slog.Logger { return f.logAt(slog.LevelWarn) }

func (f *writeFlags) logAt(level slog.Level) *slog.Logger {
	if f.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// callingUser names the user, also the one behind sudo.
func callingUser() string {
	name := fmt.Sprintf("uid %d", os.Getuid())
	if u, err := user.Current(); err == nil {
		name = "user " + text.Sanitize(u.Username, 64)
	}
	if sudo := os.Getenv("SUDO_USER"); sudo != "" && os.Getuid() == 0 {
		name += " for " + text.Sanitize(sudo, 64)
	}
	return name
}

// facts gathers the facts of a plan. used is the CPU use by path, in CPUs, as far as it
// is known; the rest is measured for a second.
func (f *writeFlags) facts(ctx context.Context, h *cgroup.Host, env apply.Env, containers []container.Container,
	used map[string]float64) (hoststate.Facts, error) {
	named := env.Scope
	if f.liftBelow != "" {
		var err error
		if named, err = cgroup.CleanPath(h, f.liftBelow); err != nil {
			return hoststate.Facts{}, fmt.Errorf("--lift-below %s: %w", f.liftBelow, err)
		}
	}
	held, err := apply.Status(env)
	if err != nil {
		return hoststate.Facts{}, err
	}
	drift, err := apply.Drift(env)
	if err != nil {
		return hoststate.Facts{}, err
	}
	o := gather.Options{
		Root: infile.Root("/"), Held: held, Journal: journal.File(env.StateDir), Drift: drift, Scope: env.Scope,
		Named: named, Used: used, Window: time.Second,
		IRQ: env.IRQ, SchedExt: schedExt(),
	}
	if units, ok := env.Systemd.(gather.Units); ok {
		o.Systemd = units
	}
	return gather.Host(ctx, h, containers, o)
}

// hostFacts gathers facts over all containers, each time anew.
func (f *writeFlags) hostFacts(h *cgroup.Host, env apply.Env) func(context.Context) (hoststate.Facts, error) {
	return func(ctx context.Context) (hoststate.Facts, error) {
		containers, err := list(h, "")
		if err != nil {
			return hoststate.Facts{}, err
		}
		return f.facts(ctx, h, env, containers, nil)
	}
}
