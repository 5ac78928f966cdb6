package boot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/test/lab"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// Guest says what to boot and what to run in it.
type Guest struct {
	Machine lab.Machine
	// QEMU makes the emulator's command.
	QEMU     func(ctx context.Context, args ...string) *exec.Cmd
	DataDirs []string
	Init     string // the guest's first process; "" is this program
	Busybox  string
	Vmlinux  string
	Modules  []string
	Files    []File
	Node     *Node // nil: the guest's root is its initramfs
	Plan     wire.Plan
	Limit    time.Duration // of the whole run
	// BootLimit is how long the guest may take to its first frame; 0 is DefaultBootLimit. One that takes longer is ended,
	// and started again, at most mostBoots times in all.
	BootLimit time.Duration

	Stdout, Stderr func(step int) io.Writer                       // of the steps; nil drops it
	Ended          func(step int, status wire.ExitStatus)         // may be nil
	OutDir         string                                         // folder for files from the guest; "" drops them
	Console        io.Writer                                      // gets the console's text as it is written; may be nil
	Terminal       *os.File                                       // console input of a shell; nil for none
	Booted         func(facts wire.BootFacts, took time.Duration) // may be nil
	NotBooted      func(err error)                                // told before another try; may be nil
}

// ErrNoBoot reports that the guest sent no frame within its BootLimit.
var ErrNoBoot = errors.New("the guest did not boot")

// ErrLimit reports that the guest did not end within its limit.
var ErrLimit = errors.New("the guest did not end within its limit")

// ErrGuest reports that the guest ended before its plan did.
var ErrGuest = errors.New("the guest ended before its plan did")

// Result is the outcome of a guest.
type Result struct {
	Exits []wire.ExitStatus // one for each step of the plan
	Facts wire.BootFacts
	Boot  time.Duration // from starting QEMU to the guest's first frame
	Total time.Duration
	// Speed is what the guest measured of itself where the plan asks for it.
	Speed wire.Speed
	// StepsBegan and StepsEnded are when the frames before the first step and after the last one came, since the start.
	StepsBegan, StepsEnded time.Duration
	CPU                    time.Duration // that QEMU used
}

const (
	// initramfsCopies: once packed, once unpacked; on top of Machine.MemoryMiB.
	initramfsCopies = 2
	consoleKept     = 64 << 10
	maxFrames       = 1 << 30
	mostBoots       = 3
	// DefaultBootLimit is ten times what a boot takes on two busy CPUs. On emulated CPUs a guest now and then waits in its
	// boot for ever.
	DefaultBootLimit = 90 * time.Second
)

// Run boots the guest and follows it to its end. An error means that the lab, not a step, has failed.
func Run(ctx context.Context, g Guest) (Result, error) {
	for boots := 1; ; boots++ {
		result, err := run(ctx, g)
		if boots == mostBoots || !errors.Is(err, ErrNoBoot) {
			return result, err
		}
		if g.NotBooted != nil {
			g.NotBooted(err)
		}
	}
}

// run is Run with one boot.
func run(ctx context.Context, g Guest) (Result, error) {
	initramfs, err := g.initramfs()
	if err != nil {
		return Result{}, err
	}
	defer initramfs.Close()
	var disks, parameters []string
	if g.Node != nil {
		files, remove, err := g.filesDisk(ctx)
		if err != nil {
			return Result{}, err
		}
		defer remove()
		disks, parameters = []string{g.Node.Disk, files}, g.Node.Parameters
	}
	if info, err := initramfs.Stat(); err == nil {
		g.Machine.MemoryMiB += initramfsCopies * int(info.Size()>>20)
	}
	frames, toFrames, err := os.Pipe()
	if err != nil {
		return Result{}, err
	}
	defer frames.Close()
	defer toFrames.Close()

	limited, cancel := context.WithTimeoutCause(ctx, g.Limit, ErrLimit)
	defer cancel()
	limited, giveUp := context.WithCancelCause(limited)
	defer giveUp(nil)
	bootLimit := cmp.Or(g.BootLimit, DefaultBootLimit)
	cmd, texts, err := g.emulator(limited, initramfs, toFrames, disks, parameters)
	if err != nil {
		return Result{}, err
	}

	start := time.Now()
	ended, err := startOnOwnThread(cmd)
	if err != nil {
		return Result{}, fmt.Errorf("start QEMU: %w", err)
	}
	toFrames.Close()
	slow := time.AfterFunc(bootLimit, func() { giveUp(ErrNoBoot) })
	defer slow.Stop()
	tell := g.Booted
	g.Booted = func(facts wire.BootFacts, took time.Duration) {
		slow.Stop()
		if tell != nil {
			tell(facts, took)
		}
	}
	var result Result
	result.Exits = make([]wire.ExitStatus, len(g.Plan.Steps))
	for i := range result.Exits {
		result.Exits[i].NotRun = "the guest ended before"
	}
	done, readErr := g.follow(frames, start, &result)
	if done || readErr != nil {
		cancel() // its last frame has arrived, or a frame was invalid
	}
	exitErr := <-ended
	result.Total = time.Since(start)
	if cmd.ProcessState != nil {
		result.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	switch {
	case readErr != nil:
		err = readErr
	case done:
		return result, nil
	default:
		err = whyEnded(context.Cause(limited), exitErr, g.Limit, bootLimit)
	}
	return result, &Failure{Err: err, Console: texts.console.String(), QEMU: withoutFeatureWarnings(texts.complaints.String())}
}

// told is the last text of the guest's console, and of QEMU.
type told struct{ console, complaints *tail }

// emulator is QEMU's command, which has the initramfs and the frames' pipe as files of its own.
func (g Guest) emulator(ctx context.Context, initramfs, toFrames *os.File, disks, parameters []string) (*exec.Cmd, told, error) {
	const firstExtraFD = 3
	cmd := g.QEMU(ctx, lab.Arguments(g.Machine, lab.Files{
		Vmlinux:   g.Vmlinux,
		Initramfs: fmt.Sprintf("/proc/self/fd/%d", firstExtraFD),
		DataDirs:  g.DataDirs,
		Frames:    fmt.Sprintf("/proc/self/fd/%d", firstExtraFD+1),
		Disks:     disks, Node: g.Plan.Node, Parameters: parameters,
	}, "stdio,signal=off")...)
	cmd.ExtraFiles = []*os.File{initramfs, toFrames}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	text := told{&tail{limit: consoleKept, also: g.Console}, &tail{limit: consoleKept}}
	cmd.Stdout, cmd.Stderr = text.console, text.complaints
	if g.Terminal != nil {
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, text, err
		}
		go func() { _, _ = io.Copy(in, g.Terminal) }() // ends with the process
	}
	return cmd, text, nil
}

// whyEnded is why a guest ended before its plan did: the cause by which it was ended, or what QEMU exited with.
func whyEnded(cause, exit error, limit, bootLimit time.Duration) error {
	switch {
	case errors.Is(cause, ErrLimit):
		return fmt.Errorf("%w of %v", cause, limit)
	case errors.Is(cause, ErrNoBoot):
		return fmt.Errorf("%w within %v", cause, bootLimit)
	case cause != nil:
		return cause
	case exit != nil:
		return fmt.Errorf("%w: QEMU: %w", ErrGuest, exit)
	}
	return ErrGuest
}

// Failure is an error of the lab with the last text of the guest's console.
type Failure struct {
	Err           error
	Console, QEMU string
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// startOnOwnThread starts a command from a thread that lives until the command ends, because the kernel sends the
// parent-death signal when that thread ends.
func startOnOwnThread(cmd *exec.Cmd) (<-chan error, error) {
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return ended, <-started
}

// follow reads frames until the guest has finished its plan (done) or has ended.
func (g Guest) follow(frames io.Reader, start time.Time, result *Result) (done bool, err error) {
	in := wire.NewReader(io.LimitReader(frames, maxFrames))
	files := &receiver{dir: g.OutDir}
	defer func() { err = errors.Join(err, files.close()) }()
	for {
		f, err := in.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("the guest's frames: %w", err)
		}
		if f.Step > 0 && f.Step >= len(g.Plan.Steps) {
			return false, fmt.Errorf("the guest names step %d of %d", f.Step, len(g.Plan.Steps))
		}
		switch f.Kind {
		case wire.Booted:
			result.Boot = time.Since(start)
			if err := json.Unmarshal(f.Payload, &result.Facts); err != nil {
				return false, fmt.Errorf("the guest's frames: booted: %w", err)
			}
			g.Booted(result.Facts, result.Boot)
			result.StepsBegan = time.Since(start)
		case wire.Speeds:
			if err := json.Unmarshal(f.Payload, &result.Speed); err != nil {
				return false, fmt.Errorf("the guest's frames: speeds: %w", err)
			}
			result.StepsBegan = time.Since(start)
		case wire.Stdout:
			write(g.Stdout, f)
		case wire.Stderr:
			write(g.Stderr, f)
		case wire.Exit:
			var status wire.ExitStatus
			if err := json.Unmarshal(f.Payload, &status); err != nil || len(g.Plan.Steps) == 0 {
				return false, fmt.Errorf("the guest's frames: exit %q: %w", f.Payload, err)
			}
			result.Exits[f.Step] = status
			result.StepsEnded = time.Since(start)
			if g.Ended != nil {
				g.Ended(f.Step, status)
			}
		case wire.FileName:
			err = files.begin(string(f.Payload))
		case wire.FileData:
			err = files.data(f.Payload)
		case wire.Broken:
			return false, fmt.Errorf("the guest could not follow its plan: %.2000s", f.Payload)
		case wire.Done:
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// write passes output on; a failed reader of ours must not end the guest.
func write(to func(step int) io.Writer, f wire.Frame) {
	if to != nil {
		_, _ = to(f.Step).Write(f.Payload)
	}
}

// withoutFeatureWarnings drops the hundreds of lines about CPU features that
// TCG does not have.
func withoutFeatureWarnings(complaints string) string {
	var kept []string
	for _, line := range strings.Split(complaints, "\n") {
		if !strings.Contains(line, "TCG doesn't support requested feature") {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}
