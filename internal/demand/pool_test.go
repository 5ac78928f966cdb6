package demand

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// Of a pool in several recordings of a slot the row has the most of each figure. Strangers' names are made safe, and what
// has most threads stays.
func TestPoolsAreInTheirSlot(t *testing.T) {
	r := NewRows(Names{"eu1", "n1"})
	o := observed(noon)
	r.Add([]observe.Observation{o})
	many := []Pool{
		{Pool: "netty-nio", Threads: 16, Runnable: 3, RunnableP99: 1, Running: 2, DefaultCPUs: new(int32(8))},
		{Name: "bus\x1b-*", Threads: 128, Runnable: 2, Running: 2}, {Pool: "netty-nio", Name: "another", Threads: 3},
		{Pool: "netty-timer", Threads: 1},
	}
	for i := range 2 * MostPools {
		many = append(many, Pool{Name: fmt.Sprintf("few-%02d", i), Threads: 2})
	}
	r.AddPools(o.CgroupID, many)
	r.AddPools(o.CgroupID, []Pool{
		{Pool: "netty-nio", Threads: 20, Runnable: 1, RunnableP99: 1, Running: 1, DefaultCPUs: new(int32(10))},
		{Name: "bus\x1b-*", Threads: 100, Runnable: 5, RunnableP99: 3, Running: 4, DefaultCPUs: new(int32(50))},
	})
	r.AddPools(o.CgroupID+1, []Pool{{Pool: "tomcat", Threads: 200}})
	got := r.Finish()[0].Pools
	want := []Pool{
		{Name: "bus\\x1b-*", Threads: 128, Runnable: 5, RunnableP99: 3, Running: 4},
		{Pool: "netty-nio", Threads: 20, Runnable: 3, RunnableP99: 1, Running: 2, DefaultCPUs: new(int32(10))},
		{Pool: "netty-nio", Name: "another", Threads: 3}, {Name: "few-00", Threads: 2},
	}
	if len(got) != MostPools || !reflect.DeepEqual(got[:len(want)], want) {
		t.Errorf("%+v, want\n%+v and more", got, want)
	}
}
