package systemd

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// fake is the part of org.freedesktop.systemd1 that this package uses, on the far end of a socket pair. The D-Bus
// library's own code runs on both ends, without a bus between.
type fake struct {
	mu    sync.Mutex
	units map[string]map[string]any // unit, "Interface.Property", value
	sets  []set
	// hang makes every call wait until the test ends.
	hang chan struct{}
	// reload is what a reload does to the units.
	reload func()
}

type set struct {
	unit    string
	runtime bool
	names   []string
}

func (f *fake) wait() {
	if f.hang != nil {
		<-f.hang
	}
}

type property struct {
	Name  string
	Value dbus.Variant
}

// manager is the object /org/freedesktop/systemd1.
type manager struct{ *fake }

func (m manager) SetUnitProperties(unit string, runtime bool, properties []property) *dbus.Error {
	m.wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.units[unit]
	if have == nil {
		return dbus.NewError("org.freedesktop.systemd1.NoSuchUnit", []any{"Unit " + unit + " not loaded."})
	}
	s := set{unit: unit, runtime: runtime}
	for _, p := range properties {
		if have["readonly"] == p.Name {
			return dbus.NewError("org.freedesktop.DBus.Error.PropertyReadOnly", []any{"Cannot set " + p.Name})
		}
		have[unitType(unit)+"."+p.Name] = p.Value.Value()
		s.names = append(s.names, p.Name)
	}
	m.sets = append(m.sets, s)
	return nil
}

func (m manager) Reload() *dbus.Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reload == nil {
		return dbus.NewError("org.freedesktop.DBus.Error.AccessDenied", []any{"no reload here"})
	}
	m.reload()
	return nil
}

// object is the object of one unit.
type object struct {
	*fake
	unit string
}

func (o object) Get(iface, name string) (dbus.Variant, *dbus.Error) {
	o.wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	value, ok := o.units[o.unit][iface[len("org.freedesktop.systemd1."):]+"."+name]
	if !ok {
		return dbus.Variant{}, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty", []any{"Unknown property " + name})
	}
	return dbus.MakeVariant(value), nil
}

// bus answers the library's calls to the bus itself.
type bus struct{}

func (bus) AddMatch(string) *dbus.Error { return nil }

// authenticated is a connection that simulates its authentication. The library has a client's side only, so the far end
// thinks that it has logged in, and then talks to the socket.
type authenticated struct {
	net.Conn
	mu     sync.Mutex
	script []byte
	begun  bool
}

func (s *authenticated) Read(b []byte) (int, error) {
	s.mu.Lock()
	if len(s.script) > 0 {
		n := copy(b, s.script)
		s.script = s.script[n:]
		s.mu.Unlock()
		return n, nil
	}
	s.mu.Unlock()
	return s.Conn.Read(b)
}

func (s *authenticated) Write(b []byte) (int, error) {
	s.mu.Lock()
	begun := s.begun
	s.begun = begun || bytes.HasPrefix(b, []byte("BEGIN"))
	s.mu.Unlock()
	if !begun {
		return len(b), nil
	}
	return s.Conn.Write(b)
}

func login(c net.Conn) (*dbus.Conn, error) {
	conn, err := dbus.NewConn(&authenticated{Conn: c, script: []byte("REJECTED EXTERNAL\r\nOK 00\r\n")})
	if err != nil {
		return nil, err
	}
	return conn, conn.Auth([]dbus.Auth{dbus.AuthExternal("0")})
}

// socketPair returns both ends.
func socketPair() (near, far net.Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		ends[i], err = net.FileConn(f)
		err = errors.Join(err, f.Close())
		if err != nil {
			return nil, nil, err
		}
	}
	return ends[0], ends[1], nil
}

func (f *fake) serve(far net.Conn) (*dbus.Conn, error) {
	server, err := login(far)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		server.Export(bus{}, "/org/freedesktop/DBus", "org.freedesktop.DBus"),
		server.Export(manager{f}, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"))
	for unit := range f.units {
		path := dbus.ObjectPath("/org/freedesktop/systemd1/unit/" + sd.PathBusEscape(unit))
		err = errors.Join(err, server.Export(object{f, unit}, path, "org.freedesktop.DBus.Properties"))
	}
	return server, err
}

// dialFake connects a Manager to the fake.
func dialFake(t *testing.T, f *fake, timeout time.Duration) *Manager {
	t.Helper()
	conn, err := sd.NewConnection(func() (*dbus.Conn, error) {
		near, far, err := socketPair()
		if err != nil {
			return nil, err
		}
		server, err := f.serve(far)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { server.Close() })
		return login(near)
	})
	if err != nil {
		t.Fatal(err)
	}
	m := New(conn, timeout)
	t.Cleanup(m.Close)
	return m
}
