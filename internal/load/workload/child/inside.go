package child

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds of a child.
const (
	maxConfig   = 4 << 20
	MaxWords    = 4096
	MaxDeadline = 2 * time.Hour
	// grace is how long after its deadline the kernel kills a child that has not
	// ended by itself.
	grace = time.Second
)

// Inside is a child's own view of itself.
type Inside struct{ in *bufio.Reader }

// Enter reads the configuration into config, a pointer. Until [Inside.EndAfter]
// says more, the child lives for a minute at most.
func Enter(config any) (*Inside, error) {
	if err := killAfter(time.Minute); err != nil {
		return nil, fmt.Errorf("cannot set a timer for its own end: %w", err)
	}
	i := &Inside{in: bufio.NewReaderSize(os.Stdin, 64<<10)}
	return i, decode(i.in, config)
}

// Begin reads and checks the configuration, a pointer, and sets the timers of the
// child's end by the deadline in it.
func Begin(config interface{ Check() error }, deadline *time.Duration) (*Inside, error) {
	i, err := Enter(config)
	if err != nil {
		return nil, err
	}
	if err := config.Check(); err != nil {
		return nil, err
	}
	return i, i.EndAfter(*deadline)
}

// decode reads one line of JSON that knows no other keys than config's.
func decode(from *bufio.Reader, config any) error {
	var line []byte
	for {
		part, err := from.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxConfig {
			return fmt.Errorf("its configuration has more than %d bytes", maxConfig)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("its configuration is cut off: %w", err)
		}
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(config); err != nil {
		return fmt.Errorf("its configuration: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("its configuration: something follows it")
	}
	return nil
}

// EndAfter sets both timers.
func (i *Inside) EndAfter(deadline time.Duration) error {
	if deadline <= 0 || deadline > MaxDeadline {
		return fmt.Errorf("deadline %v: outside 0 to %v", deadline, MaxDeadline)
	}
	if err := killAfter(deadline + grace); err != nil {
		return fmt.Errorf("cannot set a timer for its own end: %w", err)
	}
	time.AfterFunc(deadline, func() { os.Exit(0) })
	return nil
}

// Word waits for the parent's next word; false: the parent is gone.
func (i *Inside) Word() (byte, bool) {
	b, err := i.in.ReadByte()
	return b, err == nil
}

// sigevent is struct sigevent of the kernel (include/uapi/asm-generic/siginfo.h),
// 64 bytes on 64-bit machines.
type sigevent struct {
	value  uint64
	signo  int32
	notify int32 // 0 is SIGEV_SIGNAL
	_      [48]byte
}

// itimerspec is struct itimerspec.
type itimerspec struct{ interval, value unix.Timespec }

// endTimer is the one timer of this process, -1 before it is made.
var endTimer int32 = -1

// killAfter lets the kernel kill this process after d, whatever its threads do.
// A later call moves the moment.
func killAfter(d time.Duration) error {
	if endTimer < 0 {
		event := sigevent{signo: int32(unix.SIGKILL)}
		var id int32
		if _, _, errno := unix.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC,
			uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&id))); errno != 0 {
			return errno
		}
		endTimer = id
	}
	once := itimerspec{value: unix.NsecToTimespec(int64(d))}
	if _, _, errno := unix.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(endTimer), 0,
		uintptr(unsafe.Pointer(&once)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
