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
 * current_thread finds the state of the current thread if it is of the recorded container. The
 * holder of the CPU would not do: a kernel may switch without an event.
 */
static __always_inline struct thread *current_thread(void)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct thread *known = NULL;
	__u64 us = recorded;

	return us && place_of(t, stack_anywhere(t), &known) == us ? known : NULL;
}

/*
 * judge notes whether data comes from the container itself. A peer on this host sends as the
 * current task, but for single packets: an interrupt may deliver them. So the last ones decide
 * together. Packets that waited while a thread used the socket say nothing: that thread delivers
 * them itself.
 */
#define MOST_JUDGED 8
static __always_inline void judge(struct connection *of, const struct sock *sk)
{
	if (sk->__sk_common.skc_family != AF_UNIX && sk->sk_lock.owned)
		return;
	if (current_thread() && from_here(sk)) {
		if (of->inside < MOST_JUDGED)
			of->inside++;
	} else if (of->inside > -MOST_JUDGED) {
		of->inside--;
	}
}

/* connection_of returns what is known of a socket in this recording, NULL if nothing is. */
static __always_inline struct connection *connection_of(struct sock *sk)
{
	if (!sk)
		return NULL;
	struct connection *of = bpf_sk_storage_get(&connections, sk, 0, 0);
	return of && of->epoch == epoch && of->ours ? of : NULL;
}

/* next_number is a connection's number in the recording, 0 if others were faster each time. */
static __always_inline __u32 next_number(void)
{
	for (int i = 0; i < WORD_TRIES; i++) {
		__u64 was = connected;
		if (__sync_val_compare_and_swap(&connected, was, was + 1) == was)
			return was + 1;
	}
	return 0;
}

/* numbered gives a connection its number in the recording. */
static __always_inline void numbered(struct connection *of)
{
	if (!of->number)
		of->number = next_number();
}

/*
 * datagram reports whether sk is a UDP socket of a server, which is connected to no client. A datagram
 * is a request, its answer is the next datagram that the thread which read it sends from that socket.
 * A thread that reads several answers them in that order. So each has a number of its own, as a
 * connection with one request has.
 */
static __always_inline bool datagram(const struct sock *sk)
{
	__u64 to[2] = {};

	if (sk->sk_type != SOCK_DGRAM || sk->sk_protocol != IPPROTO_UDP)
		return false;
	if (sk->__sk_common.skc_family == AF_INET)
		return !sk->__sk_common.skc_daddr;
	if (sk->__sk_common.skc_family != AF_INET6)
		return false;
	BPF_CORE_READ_INTO(&to, sk, __sk_common.skc_v6_daddr);
	return !to[0] && !to[1];
}

static __always_inline struct datagrams *datagrams_of(struct sock *sk)
{
	__u32 e = epoch;
	struct datagrams *of = bpf_sk_storage_get(&datagram_sockets, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (of && of->epoch != e) {
		of->came = of->read = of->client = of->inside = 0;
		of->epoch = e;
	}
	return of;
}

/*
 * datagram_arrives notes the time. Whether the sender is of the container, the last ones decide
 * together: over loopback it is the current task, and otherwise an interrupt has any task below it.
 */
static __always_inline int datagram_arrives(struct sock *sk)
{
	struct datagrams *of = datagrams_of(sk);

	if (!of || of->client)
		return 0;
	if (current_thread()) {
		if (of->inside < MOST_JUDGED)
			of->inside++;
	} else if (of->inside > -MOST_JUDGED) {
		of->inside--;
	}
	of->arrived[__sync_fetch_and_add(&of->came, 1) % DATAGRAMS_WAIT] = bpf_ktime_get_ns();
	return 0;
}

/* datagram_received takes the oldest datagram. Of more than DATAGRAMS_WAIT the oldest times are lost. */
static __always_inline int datagram_received(struct sock *sk, struct thread *t)
{
	struct datagrams *of = datagrams_of(sk);
	struct unanswered *mine;
	__u64 now = bpf_ktime_get_ns();

	if (!of || of->client)
		return 0;
	__u64 came = of->came, waits = came - of->read;
	__u64 since = now; /* it arrived before the recording */
	if (waits && waits <= DATAGRAMS_WAIT * 1024) {
		if (waits > DATAGRAMS_WAIT)
			of->read = came - DATAGRAMS_WAIT;
		since = of->arrived[__sync_fetch_and_add(&of->read, 1) % DATAGRAMS_WAIT];
	}
	if (of->inside > 0 || t->epoch != epoch)
		return 0;
	mine = bpf_task_storage_get(&datagram_threads, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!mine)
		return 0;
	if (mine->epoch != epoch || mine->sk != (__u64)sk || mine->sending) {
		mine->epoch = epoch;
		mine->sk = (__u64)sk;
		mine->read = mine->answered = mine->sending = 0;
	}
	__u32 number = next_number();
	if (!number || mine->read - mine->answered >= DATAGRAMS_READ)
		return 0;
	mine->number[mine->read++ % DATAGRAMS_READ] = number;
	union any_record r = {.r = {.at = now, .kind = RECORD_RECEIVE, .a = t->tid, .b = number}};
	r.more.c = since;
	emit_more(&r);
	return 0;
}

static __always_inline int datagram_sent(struct sock *sk, struct thread *t)
{
	struct datagrams *of = datagrams_of(sk);
	struct unanswered *mine;

	if (!of)
		return 0;
	/* A server may send first in this recording: the answer to what it read before. */
	if (!of->came && !(BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & SOCK_BINDPORT_LOCK))
		of->client = 1;
	mine = bpf_task_storage_get(&datagram_threads, bpf_get_current_task_btf(), 0, 0);
	if (!mine || mine->epoch != epoch || mine->sk != (__u64)sk || mine->answered == mine->read)
		return 0;
	mine->sending = 1;
	union any_record r = {.r = {.at = bpf_ktime_get_ns(), .kind = RECORD_SEND, .a = t->tid,
		.b = mine->number[mine->answered++ % DATAGRAMS_READ]}};
	emit(&r);
	return 0;
}

static __always_inline int arrives(struct sock *sk)
{
	__u32 e = epoch;

	if (!recorded || !sk)
		return 0;
	if (datagram(sk))
		return datagram_arrives(sk);
	if (!stream(sk))
		return 0;
	struct connection *of = bpf_sk_storage_get(&connections, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!of)
		return 0;
	if (of->epoch != e) {
		of->arrived = of->latest = of->sent = of->number = of->inside = 0;
		of->ours = opened_to(sk);
		of->epoch = e;
	}
	if (!of->ours)
		return 0;
	of->latest = bpf_ktime_get_ns();
	judge(of, sk);
	if (!of->arrived)
		of->arrived = of->latest;
	return 0;
}

static __always_inline int received(struct sock *sk, int n, int flags)
{
	struct thread *t;
	struct connection *of;

	if (n < 0 || flags & MSG_PEEK || !sk || !(t = current_thread()))
		return 0;
	if (datagram(sk))
		return datagram_received(sk, t);
	if (!n || !(of = connection_of(sk)))
		return 0;
	union any_record r = {.r = {.at = bpf_ktime_get_ns(), .kind = RECORD_RECEIVE, .a = t->tid}};
	__u64 since = of->arrived;
	of->arrived = 0;
	if (!since) { /* a further part of what was there, or data that came while a read ended */
		if (!of->sent)
			return 0;
		since = of->latest > of->sent ? of->latest : r.r.at;
	}
	if (of->inside > 0 || t->epoch != epoch)
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

static __always_inline int sent(struct sock *sk, int n)
{
	struct thread *t;
	struct connection *of;

	if (n < 0 || !sk || !(t = current_thread()))
		return 0;
	if (datagram(sk))
		return datagram_sent(sk, t);
	if (!n || !(of = connection_of(sk)) || !of->number || of->inside > 0 || t->epoch != epoch)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	if (of->sent && now - of->sent < SEND_EVERY)
		return 0;
	union any_record r = {.r = {.at = now, .kind = RECORD_SEND, .a = t->tid, .b = of->number}};
	of->sent = now;
	emit(&r);
	return 0;
}

#endif
