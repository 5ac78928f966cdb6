/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reads and writes of connections, attached while recording. Data that arrives at a socket marks
 * it. The read that takes the data tells since when it waited, so the time of a request begins at
 * its arrival, even while a quota stops the thread that will read it.
 */
#ifndef PROBE_SOCKET_H
#define PROBE_SOCKET_H

/*
 * opened_to reports whether a client opened this connection to the side of sk. A port that the
 * kernel chose for connect() is in a bucket with a negative fastreuse (__inet_hash_connect); that
 * of a listener never is, and a connection that it accepts shares its bucket. A Unix stream that
 * was accepted has the address of its listener (unix_stream_connect), and the client has none.
 */
static __always_inline bool opened_to(const struct sock *sk)
{
	if (sk->__sk_common.skc_family == AF_UNIX)
		return BPF_CORE_READ((struct unix_sock *)sk, addr) != NULL;
	struct inet_bind_bucket *b = BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_bind_hash);
	return b && BPF_CORE_READ(b, fastreuse) >= 0;
}

/*
 * from_here reports whether the other side of sk is on this host and address. What it sends then
 * arrives on its own CPU while it runs. Otherwise the current task says nothing about the sender.
 */
static __always_inline bool from_here(const struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family;

	if (family == AF_UNIX)
		return true;
	if (family == AF_INET) {
		__be32 to = sk->__sk_common.skc_daddr;
		return to == sk->__sk_common.skc_rcv_saddr || (to & 0xff) == 127;
	}
	__u64 to[2] = {}, from[2] = {};
	BPF_CORE_READ_INTO(&to, sk, __sk_common.skc_v6_daddr);
	BPF_CORE_READ_INTO(&from, sk, __sk_common.skc_v6_rcv_saddr);
	return to[0] == from[0] && to[1] == from[1];
}

static __always_inline bool stream(const struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family;

	if (sk->sk_type != SOCK_STREAM || sk->__sk_common.skc_state == TCP_LISTEN)
		return false;
	return family == AF_UNIX || ((family == AF_INET || family == AF_INET6) && sk->sk_protocol == IPPROTO_TCP);
}

/*
 * connection_of returns what is known of a socket in this recording, NULL if nothing is, or if the
 * current task is not of the recorded container.
 */
static __always_inline struct connection *connection_of(struct cpu *c, struct sock *sk)
{
	if (!c || !recorded || c->handle != recorded || !sk)
		return NULL;
	struct connection *of = bpf_sk_storage_get(&connections, sk, 0, 0);
	return of && of->epoch == epoch && of->ours ? of : NULL;
}

/* current_thread returns the number of the current thread in the recording; 0: it has none yet. */
static __always_inline __u32 current_thread(void)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct thread *known = thread_of(t, stack_anywhere(t), false);

	return known && known->epoch == epoch ? known->tid : 0;
}

/* numbered gives a connection its number in the recording. */
static __always_inline void numbered(struct connection *of)
{
	for (int i = 0; i < WORD_TRIES && !of->number; i++) {
		__u64 was = connected;
		if (__sync_val_compare_and_swap(&connected, was, was + 1) == was)
			of->number = was + 1;
	}
}

static __always_inline int arrives(struct cpu *c, struct sock *sk)
{
	__u32 e = epoch;

	if (!c || !recorded || !sk || !stream(sk))
		return 0;
	struct connection *of = bpf_sk_storage_get(&connections, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!of)
		return 0;
	if (of->epoch != e) {
		of->arrived = of->latest = of->sent = of->number = 0;
		of->ours = opened_to(sk);
		of->epoch = e;
	}
	if (!of->ours)
		return 0;
	of->latest = bpf_ktime_get_ns();
	if (of->arrived)
		return 0;
	of->inside = c->handle == recorded && from_here(sk);
	of->arrived = of->latest;
	return 0;
}

static __always_inline int received(struct cpu *c, struct sock *sk, int n, int flags)
{
	struct connection *of = connection_of(c, sk);

	if (n <= 0 || !of || flags & MSG_PEEK)
		return 0;
	union any_record r = {.r = {.at = bpf_ktime_get_ns(), .kind = RECORD_RECEIVE, .a = current_thread()}};
	__u64 since = of->arrived;
	of->arrived = 0;
	if (!since) { /* a further part of what was there, or data that came while a read ended */
		if (!of->sent)
			return 0;
		since = of->latest > of->sent ? of->latest : r.r.at;
	}
	if (of->inside || !r.r.a)
		return 0;
	numbered(of);
	if (!of->number)
		return 0;
	r.r.b = of->number;
	r.more.c = since;
	of->sent = 0;
	emit_more(&r);
	return 0;
}

static __always_inline int sent(struct cpu *c, struct sock *sk, int n)
{
	struct connection *of = connection_of(c, sk);

	if (n <= 0 || !of || !of->number || of->inside)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	if (of->sent && now - of->sent < SEND_EVERY)
		return 0;
	union any_record r = {.r = {.at = now, .kind = RECORD_SEND, .a = current_thread(), .b = of->number}};
	if (!r.r.a)
		return 0;
	of->sent = now;
	emit(&r);
	return 0;
}

#endif
