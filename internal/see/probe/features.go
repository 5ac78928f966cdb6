package probe

import (
	"errors"

	"github.com/cilium/ebpf/btf"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// kernel is what the running kernel's types say about it. Versions say nothing, because distributions backport fields.
type kernel struct {
	// markTask reports that the kernel marks throttled tasks (6.18), markQueue that it marks run queues.
	markTask, markQueue bool
	// create reports that task storage can be made under a run queue's lock, from memory set aside (6.4).
	create bool
	// slicesExpire reports that a CPU's slices of the quota expire with the period. cfs_bandwidth.expires_seq came with
	// Linux 4.18 (512ac999d275), which made expiry work. It went with 5.4 (de53fd7aedb1), which ended expiry.
	// Distributions that took either change took the member too. nil means that the kernel has no such struct.
	slicesExpire *bool
	// sockets reports that the tracepoints of sockets exist (6.3), and what their programs read.
	sockets bool
	// timers reports that the tracepoints of hrtimers exist.
	timers bool
}

func readKernel(types *btf.Spec) (kernel, error) {
	var k kernel
	task, err := structOf(types, "task_struct")
	if err != nil {
		return k, err
	}
	k.markTask = task["throttled"]
	if queue, err := structOf(types, "cfs_rq"); err == nil {
		k.markQueue = queue["throttle_count"]
	}
	if bandwidth, err := structOf(types, "cfs_bandwidth"); err == nil {
		k.slicesExpire = new(bandwidth["expires_seq"])
	}
	if storage, err := structOf(types, "bpf_local_storage_map"); err == nil {
		k.create = storage["storage_ma"] || storage["selem_ma"] || storage["use_kmalloc_nolock"]
	}
	_, entry := types.AnyTypesByName("btf_trace_hrtimer_expire_entry")
	_, exit := types.AnyTypesByName("btf_trace_hrtimer_expire_exit")
	k.timers = entry == nil && exit == nil
	bucket, err := structOf(types, "inet_bind_bucket")
	k.sockets = err == nil && bucket["fastreuse"]
	for _, point := range []string{"sk_data_ready", "sock_recv_length", "sock_send_length", "net_dev_queue"} {
		_, err := types.AnyTypesByName("btf_trace_" + point)
		k.sockets = k.sockets && err == nil
	}
	return k, nil
}

// structOf returns the names of a struct's fields, including those of unnamed structs within it.
func structOf(types *btf.Spec, name string) (map[string]bool, error) {
	var s *btf.Struct
	if err := types.TypeByName(name, &s); err != nil {
		var many interface{ Unwrap() error }
		if all, e := types.AnyTypesByName(name); e == nil && errors.As(err, &many) {
			for _, t := range all {
				if s, _ = t.(*btf.Struct); s != nil {
					break
				}
			}
		}
		if s == nil {
			return nil, err
		}
	}
	fields := map[string]bool{}
	addFields(fields, s.Members)
	return fields, nil
}

func addFields(fields map[string]bool, members []btf.Member) {
	for _, m := range members {
		fields[m.Name] = true
		if m.Name != "" {
			continue
		}
		switch t := m.Type.(type) {
		case *btf.Struct:
			addFields(fields, t.Members)
		case *btf.Union:
			addFields(fields, t.Members)
		}
	}
}

// Features returns what this kernel lets the probe see.
func (p *Probe) Features() recording.Features {
	f := recording.Features{Periods: p.kernel.timers && !p.options.WidthOnly, Migrations: !p.options.WidthOnly,
		Sockets: p.kernel.sockets && !p.options.WidthOnly, SlicesExpire: p.kernel.slicesExpire}
	switch {
	case p.options.WidthOnly:
	case p.kernel.markTask:
		f.Mark = recording.MarkTask
	case p.kernel.markQueue:
		f.Mark = recording.MarkQueue
	}
	return f
}
