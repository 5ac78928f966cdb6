package explain

import (
	"os"
	"testing"

	"github.com/unthrottle/unthrottle/host"
)

// hasDebt tells kernels that park threads only when they return to user mode (6.18): before, there is no debt to provoke.
func hasDebt(t testing.TB) bool {
	t.Helper()
	return host.ReadKernel(os.DirFS("/"), host.Unknown, host.Unknown).TaskThrottle == host.Yes
}
