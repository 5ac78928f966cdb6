package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// defaultTimeout bounds every call to systemd.
const defaultTimeout = 5 * time.Second

// ErrNoUnit means that systemd does not know the unit. It is an fs.ErrNotExist.
var ErrNoUnit = fmt.Errorf("no such unit: %w", fs.ErrNotExist)

// Error is a failed call, with its purpose and its cause.
type Error struct {
	Unit, Property string
	Op             string
	Err            error
}

// Error names unit, property and cause.
func (e *Error) Error() string {
	if e.Unit == "" {
		return fmt.Sprintf("systemd: cannot %s: %v", e.Op, e.Err)
	}
	if e.Property == "" {
		return fmt.Sprintf("systemd: unit %q: cannot %s: %v", e.Unit, e.Op, e.Err)
	}
	return fmt.Sprintf("systemd: unit %q: cannot %s %s: %v", e.Unit, e.Op, e.Property, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Manager is a connection to the system's systemd. Several goroutines may call its methods.
type Manager struct {
	conn    *sd.Conn
	timeout time.Duration
	control string // controlDir
}

// Dial connects to the systemd that runs this machine. It fails if systemd did not boot the machine or does not answer.
// Callers then write cgroups directly and warn that a reload may undo it.
func Dial(ctx context.Context) (*Manager, error) {
	// sd_booted(3).
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return nil, fmt.Errorf("systemd does not run this machine: %w", err)
	}
	dialCtx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	type dialled struct {
		conn *sd.Conn
		err  error
	}
	// The library ties the connection to the given context, which must therefore outlive Dial.
	done := make(chan dialled, 1)
	go func() {
		conn, err := sd.NewWithContext(context.WithoutCancel(ctx))
		done <- dialled{conn, err}
	}()
	select {
	case d := <-done:
		if d.err != nil {
			return nil, fmt.Errorf("systemd does not answer on D-Bus: %w", d.err)
		}
		return New(d.conn, defaultTimeout), nil
	case <-dialCtx.Done():
		go func() {
			if d := <-done; d.conn != nil {
				d.conn.Close()
			}
		}()
		return nil, fmt.Errorf("systemd does not answer on D-Bus: %w", dialCtx.Err())
	}
}

// New uses an existing connection; timeout bounds every call.
func New(conn *sd.Conn, timeout time.Duration) *Manager { return &Manager{conn, timeout, controlDir} }

// Close ends the connection.
func (m *Manager) Close() { m.conn.Close() }

// Owns returns the unit whose own cgroup the path is. The name must fit, and systemd must report this very cgroup for
// the unit. No unit owns a cgroup below a unit's own.
func (m *Manager) Owns(path string) (unit string, ok bool) {
	unit = unitOf(path)
	if unit == "" {
		return "", false
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.timeout)
	defer cancel()
	p, err := m.conn.GetUnitTypePropertyContext(ctx, unit, unitType(unit), "ControlGroup")
	if err != nil {
		return "", false
	}
	group, isText := p.Value.Value().(string)
	if !isText || group != path {
		return "", false
	}
	return unit, true
}

// Get reads a property.
func (m *Manager) Get(ctx context.Context, unit, property string) (string, error) {
	fail := func(err error) (string, error) {
		return "", &Error{Unit: unit, Property: property, Op: "read", Err: named(err)}
	}
	kind := unitType(unit)
	if kind == "" {
		return fail(errors.New("not the name of a unit that has a cgroup"))
	}
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	// systemd also answers for units that do not exist, with defaults.
	loaded, err := m.conn.GetUnitPropertyContext(ctx, unit, "LoadState")
	if err != nil {
		return fail(err)
	}
	if loaded.Value.Value() == "not-found" {
		return fail(ErrNoUnit)
	}
	p, err := m.conn.GetUnitTypePropertyContext(ctx, unit, kind, property)
	if err != nil {
		return fail(err)
	}
	text, err := decode(property, p.Value)
	if err != nil {
		return fail(err)
	}
	return text, nil
}

// Set sets properties in one call. They last until the next reboot only.
func (m *Manager) Set(ctx context.Context, unit string, properties map[string]string, runtime bool) error {
	names := slices.Sorted(maps.Keys(properties))
	e := &Error{Unit: unit, Op: "set"}
	if len(names) > 0 {
		e.Property = names[0]
	}
	if unitType(unit) == "" {
		e.Err = errors.New("not the name of a unit that has a cgroup")
		return e
	}
	var all []sd.Property
	for _, name := range names {
		value, err := encode(name, properties[name])
		if err != nil {
			e.Property, e.Err = name, err
			return e
		}
		all = append(all, sd.Property{Name: name, Value: value})
	}
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if err := m.conn.SetUnitPropertiesContext(ctx, unit, runtime, all...); err != nil {
		e.Err = named(err)
		return e
	}
	return nil
}

// named puts D-Bus errors into words.
func named(err error) error {
	var d dbus.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("systemd did not answer in time: %w", err)
	case errors.Is(err, dbus.ErrClosed):
		return fmt.Errorf("the connection to systemd is closed: %w", err)
	case !errors.As(err, &d):
		return err
	}
	switch d.Name {
	case "org.freedesktop.systemd1.NoSuchUnit", "org.freedesktop.DBus.Error.UnknownObject":
		return fmt.Errorf("%w (%w)", ErrNoUnit, err)
	case "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired":
		return fmt.Errorf("not permitted; this needs root: %w", err)
	case "org.freedesktop.DBus.Error.PropertyReadOnly", "org.freedesktop.DBus.Error.UnknownProperty":
		return fmt.Errorf("this systemd cannot set it: %w", err)
	}
	return err
}
