package kept

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

type result struct{ Seed uint64 }

// failing is a test that notes why it was ended.
type failing struct {
	testing.TB
	why string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// refused runs a function that must end its test.
func refused(run func(t testing.TB)) string {
	f := &failing{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(f)
	}()
	<-done
	return f.why
}

func TestGoesOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "results.jsonl")
	if all := Read[result](t, file); all != nil {
		t.Errorf("%v before anything was kept", all)
	}
	for seed := range uint64(3) {
		Append(t, file, result{seed})
	}
	if all := Read[result](t, file); !reflect.DeepEqual(all, []result{{0}, {1}, {2}}) {
		t.Errorf("%v", all)
	}
	for name, line := range map[string]string{"cut off": `{"Seed":`, "too long": strings.Repeat(" ", 1<<17)} {
		damaged := filepath.Join(t.TempDir(), "damaged")
		if err := os.WriteFile(damaged, []byte("{\"Seed\":1}\n"+line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if why := refused(func(t testing.TB) { Read[result](t, damaged) }); !strings.Contains(why, damaged) || !strings.Contains(why, "remove it to begin anew") {
			t.Errorf("%s: %q", name, why)
		}
	}
}

func TestNumber(t *testing.T) {
	const variable = "UNTHROTTLE_TEST_NUMBER"
	if n := Number(t, variable, 7); n != 7 {
		t.Errorf("unset: %d", n)
	}
	t.Setenv(variable, "3")
	if n := Number(t, variable, 7); n != 3 {
		t.Errorf("3 is %d", n)
	}
	for _, bad := range []string{"0", "-1", "many"} {
		t.Setenv(variable, bad)
		if why := refused(func(t testing.TB) { Number(t, variable, 7) }); why != variable+"="+bad+": a number above 0 is wanted" {
			t.Errorf("%s: %q", bad, why)
		}
	}
}
