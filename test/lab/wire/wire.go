package wire

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// Paths and names in the guest.
const (
	Dir      = "/lab"
	PlanPath = Dir + "/plan.json"
	// InitPath is the program that follows the plan, on a node: there it is not the first process.
	InitPath = Dir + "/init"
	// SpeedPath has the calibration as Speed, for the steps; there is none without one. A node's Dir is read-only.
	SpeedPath = "/run/unthrottle-lab-speed.json"
	OutDir    = "/out" // files left here return to the host
	PortName  = "unthrottle.lab"
)

// maxPayload bounds one frame, in bytes.
const maxPayload = 64 << 10

const maxHeader = 64

// Plan is the guest's work after boot.
type Plan struct {
	Steps []Step `json:"steps"`
	// CgroupVersion is the hierarchy to mount, 1 or 2.
	CgroupVersion int `json:"cgroup_version"`
	// Node has the root on a disk, whose own init the first process becomes. A service of it follows the plan, anew after
	// each boot.
	Node bool `json:"node,omitempty"`
	// Packages has the root on a disk too, whose packages the steps find. The first process stays ours.
	Packages bool `json:"packages,omitempty"`
	// Shell starts an interactive shell on the console instead of Steps.
	Shell bool `json:"shell,omitempty"`
	// Calibrate measures the machine's speed before the steps.
	Calibrate bool `json:"calibrate,omitempty"`
	// LimitSec ends the guest from within, in case the host is gone.
	LimitSec int `json:"limit_sec"`
}

// Step is one command in the guest.
type Step struct {
	Argv []string `json:"argv"`
	Dir  string   `json:"dir,omitempty"`
	Env  []string `json:"env,omitempty"` // added to the guest's
	// LimitSec ends the step with SIGQUIT, then SIGKILL; 0 means no limit.
	LimitSec int `json:"limit_sec,omitempty"`
}

// Kind is the kind of a frame's payload.
type Kind string

// The kinds of frames.
const (
	Booted   Kind = "booted"   // the guest is up; payload: Booted as JSON
	Speeds   Kind = "speeds"   // the guest was calibrated; payload: Speed as JSON
	Stdout   Kind = "stdout"   // of a step
	Stderr   Kind = "stderr"   // of a step
	Exit     Kind = "exit"     // a step ended; payload: ExitStatus as JSON
	FileName Kind = "filename" // a file of OutDir begins; payload: its path below it
	FileData Kind = "filedata" // the next bytes of that file
	Done     Kind = "done"     // the plan has ended
	Broken   Kind = "broken"   // the guest could not follow the plan; payload: why
)

// BootFacts is the payload of Booted.
type BootFacts struct {
	Release   string  `json:"release"` // of the kernel
	UptimeSec float64 `json:"uptime_sec"`
}

// Speed is the payload of Speeds: how fast the guest is by its own clock.
type Speed struct {
	LoopRateOne float64 `json:"loop_rate_one"` // rounds of a tight loop per second, one CPU busy
	LoopRateAll float64 `json:"loop_rate_all"` // the same per CPU with all busy
	SwitchNs    float64 `json:"switch_ns"`     // a switch between two threads on one CPU; 0: not measured
	SleepLateUs float64 `json:"sleep_late_us"` // the median by which a sleep of 1 ms ends late
}

// ExitStatus is the payload of Exit.
type ExitStatus struct {
	Code     int    `json:"code"`              // of the command; -1 if a signal ended it
	Signal   string `json:"signal,omitempty"`  // its name
	Limit    bool   `json:"limit,omitempty"`   // it reached its LimitSec
	NotRun   string `json:"not_run,omitempty"` // why it was not started at all
	WallUsec int64  `json:"wall_usec"`
}

// Frame is one message.
type Frame struct {
	Kind    Kind
	Step    int
	Payload []byte
}

// Writer writes frames; it may be used by several goroutines.
type Writer struct {
	mu  sync.Mutex
	out io.Writer
}

// NewWriter writes frames to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write sends the payload, a long one in several frames. It sends an empty one too.
func (w *Writer) Write(kind Kind, step int, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		part := payload[:min(len(payload), maxPayload)]
		payload = payload[len(part):]
		frame := append(fmt.Appendf(nil, "%s %d %d\n", kind, step, len(part)), part...)
		if _, err := w.out.Write(frame); err != nil {
			return fmt.Errorf("send %s: %w", kind, err)
		}
		if len(payload) == 0 {
			return nil
		}
	}
}

// JSON sends v as the payload.
func (w *Writer) JSON(kind Kind, step int, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.Write(kind, step, payload)
}

// Stream returns an io.Writer whose bytes become frames of one kind and step.
func (w *Writer) Stream(kind Kind, step int) io.Writer { return stream{w, kind, step} }

type stream struct {
	w    *Writer
	kind Kind
	step int
}

func (s stream) Write(p []byte) (int, error) {
	if err := s.w.Write(s.kind, s.step, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Reader reads frames.
type Reader struct{ in *bufio.Reader }

// NewReader reads frames from in.
func NewReader(in io.Reader) *Reader { return &Reader{bufio.NewReaderSize(in, maxPayload+maxHeader)} }

// Next returns the next frame, io.EOF after the last one, and io.ErrUnexpectedEOF if the stream ends within a frame.
func (r *Reader) Next() (Frame, error) {
	header, err := r.header()
	if err != nil {
		return Frame{}, err
	}
	fields := strings.Split(header, " ")
	if len(fields) != 3 || !knownKind(Kind(fields[0])) {
		return Frame{}, fmt.Errorf("frame header %q: want <kind> <step> <bytes>", header)
	}
	step, err := strconv.ParseUint(fields[1], 10, 20)
	if err != nil {
		return Frame{}, fmt.Errorf("frame header %q: step: %w", header, err)
	}
	size, err := strconv.ParseUint(fields[2], 10, 31)
	if err != nil || size > maxPayload {
		return Frame{}, fmt.Errorf("frame header %q: want a size up to %d bytes", header, maxPayload)
	}
	f := Frame{Kind: Kind(fields[0]), Step: int(step), Payload: make([]byte, size)}
	if _, err := io.ReadFull(r.in, f.Payload); err != nil {
		return Frame{}, io.ErrUnexpectedEOF
	}
	return f, nil
}

func (r *Reader) header() (string, error) {
	var line []byte
	for len(line) < maxHeader {
		b, err := r.in.ReadByte()
		switch {
		case err == io.EOF && len(line) > 0:
			return "", io.ErrUnexpectedEOF
		case err != nil:
			return "", err
		case b == '\n':
			return string(line), nil
		}
		line = append(line, b)
	}
	return "", fmt.Errorf("frame header %q: longer than %d bytes", line, maxHeader)
}

func knownKind(k Kind) bool {
	switch k {
	case Booted, Speeds, Stdout, Stderr, Exit, FileName, FileData, Done, Broken:
		return true
	}
	return false
}
