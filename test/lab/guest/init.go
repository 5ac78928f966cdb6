package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// Inside reports whether this process is the guest's first one, or a node's service that follows the plan.
func Inside() bool {
	if os.Getpid() != 1 && os.Getenv(serviceVariable) == "" {
		return false
	}
	_, err := os.Stat(wire.PlanPath)
	return err == nil
}

// Init follows the plan and switches the machine off. It does not return.
func Init() {
	err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab guest:", err)
	}
	// The host ends the machine once it has read the last frame. An immediate power-off would lose the content of the
	// virtio queue, because writes to the port do not wait for the host (virtio_console.c, port_fops_write).
	time.Sleep(lastFrameGrace)
	for {
		// This fails only for a process other than the first one.
		_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
		time.Sleep(time.Second)
	}
}

const lastFrameGrace = 20 * time.Second

func run() error {
	text, err := os.ReadFile(wire.PlanPath)
	if err != nil {
		return err
	}
	var plan wire.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return fmt.Errorf("%s: %w", wire.PlanPath, err)
	}
	if plan.Node && os.Getpid() == 1 {
		return becomeNode()
	}
	if plan.Packages {
		if err := enterDisk(); err != nil {
			return err
		}
	}
	var setupErr error
	if !plan.Node {
		setupErr = errors.Join(setUp(plan), loadModules("/lab/modules"))
	}
	port, err := openPort(10 * time.Second)
	if err != nil {
		return errors.Join(setupErr, err)
	}
	host := wire.NewWriter(port)
	if setupErr != nil {
		return host.Write(wire.Broken, 0, []byte(setupErr.Error()))
	}
	if plan.LimitSec > 0 {
		time.AfterFunc(time.Duration(plan.LimitSec)*time.Second, func() {
			fmt.Fprintln(os.Stderr, "lab guest: limit reached, switching off")
			_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
		})
	}
	if err := host.JSON(wire.Booted, 0, bootFacts()); err != nil {
		return err
	}
	if plan.Calibrate {
		if err := tellSpeed(host, calibrate()); err != nil {
			return err
		}
	}
	r := startReaper()
	if plan.Shell {
		shell(r)
	}
	for i, step := range plan.Steps {
		status := r.run(step, host.Stream(wire.Stdout, i), host.Stream(wire.Stderr, i))
		if err := host.JSON(wire.Exit, i, status); err != nil {
			return err
		}
	}
	if err := sendFiles(host, wire.OutDir); err != nil {
		return host.Write(wire.Broken, 0, []byte(err.Error()))
	}
	return host.Write(wire.Done, 0, nil)
}

// tellSpeed tells the host and the steps how fast this machine is.
func tellSpeed(host *wire.Writer, speed wire.Speed) error {
	text, err := json.Marshal(speed)
	if err != nil {
		return err
	}
	if err := os.WriteFile(wire.SpeedPath, text, 0o644); err != nil {
		return host.Write(wire.Broken, 0, []byte(err.Error()))
	}
	return host.Write(wire.Speeds, 0, text)
}

func bootFacts() wire.BootFacts {
	var facts wire.BootFacts
	var name unix.Utsname
	if err := unix.Uname(&name); err == nil {
		facts.Release = unix.ByteSliceToString(name.Release[:])
	}
	if uptime, err := os.ReadFile("/proc/uptime"); err == nil {
		if f := strings.Fields(string(uptime)); len(f) > 0 {
			facts.UptimeSec, _ = strconv.ParseFloat(f[0], 64)
		}
	}
	return facts
}

// port is the virtio-serial port, opened for blocking writes, which wait for room in the queue.
type port int

func (p port) Write(b []byte) (int, error) {
	written := 0
	for written < len(b) {
		n, err := unix.Write(int(p), b[written:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

func openPort(wait time.Duration) (port, error) {
	for deadline := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		names, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
		for _, file := range names {
			name, err := os.ReadFile(file)
			if err != nil || strings.TrimSpace(string(name)) != wire.PortName {
				continue
			}
			device := "/dev/" + filepath.Base(filepath.Dir(file))
			fd, err := unix.Open(device, unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return 0, fmt.Errorf("open %s: %w", device, err)
			}
			return port(fd), nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("no virtio-serial port named %s: is virtio_console in the kernel or among the modules?", wire.PortName)
		}
	}
}

// sendFiles sends the regular files below dir.
func sendFiles(host *wire.Writer, dir string) error {
	return filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) && file == dir {
			return nil // a node has it if a step makes it
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		below, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		if err := host.Write(wire.FileName, 0, []byte(below)); err != nil {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(host.Stream(wire.FileData, 0), f)
		return err
	})
}

func loadModules(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.ko*"))
	if err != nil {
		return err
	}
	for _, file := range files { // sorted: the name begins with a number
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		flags := 0
		if filepath.Ext(file) != ".ko" {
			flags = unix.MODULE_INIT_COMPRESSED_FILE
		}
		err = unix.FinitModule(int(f.Fd()), "", flags)
		f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load %s: %w", file, err)
		}
	}
	return nil
}
