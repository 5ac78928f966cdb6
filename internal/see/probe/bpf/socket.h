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

	return us && place_of(t, t->sched_task_group, stack_anywhere(t), &known) == us ? known : NULL;
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

/* datagram reports whether sk is a UDP socket of a server, which is connected to no client. */
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

/*
 * served reports whether a UDP socket is a server's: its port was chosen, or the container read from it before it sent. A server on a
 * port of the kernel's choice may send first in a recording, the answer to what it read before; it then counts as a client.
 */
static __always_inline bool served(struct sock *sk, bool sends)
{
	__u32 e = epoch;
	struct connection *of = bpf_sk_storage_get(&connections, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!of)
		return false;
	if (of->epoch != e) {
		of->ours = !sends || BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & SOCK_BINDPORT_LOCK;
		of->epoch = e;
	}
	return of->ours;
}

enum packet_side { FROM, TO };

/* read_packet finds the address and port on one side of a packet of UDP, and its first bytes. */
static __always_inline bool read_packet(const struct sk_buff *skb, enum packet_side side, struct datagram *d)
{
	const unsigned char *head = BPF_CORE_READ(skb, head);
	const unsigned char *ip = head + BPF_CORE_READ(skb, network_header), *udp = head + BPF_CORE_READ(skb, transport_header);
	__be16 ports[4]; /* from, to, length, checksum */
	__u8 v4[20];	 /* the whole header, of IPv6 the first half */
	__u64 v6[2];

	d->client = d->head = d->at = 0;
	if (bpf_probe_read_kernel(v4, sizeof(v4), ip) || bpf_probe_read_kernel(ports, sizeof(ports), udp))
		return false;
	if (v4[0] >> 4 == 4) {
		if (v4[6] & 0x1f || v4[7]) /* a fragment that is not the first has no ports */
			return false;
		d->client = (side == FROM ? *(__u32 *)(v4 + 12) : *(__u32 *)(v4 + 16)) * HASH_FACTOR;
	} else {
		if (bpf_probe_read_kernel(v6, sizeof(v6), ip + (side == FROM ? 8 : 24)))
			return false;
		d->client = (v6[0] * HASH_FACTOR ^ v6[1]) * HASH_FACTOR;
	}
	d->client ^= ports[side];
	__u32 n = bpf_ntohs(ports[2]);
	if (n >= 16)
		bpf_probe_read_kernel(&d->head, 8, udp + 8);
	else if (n > 8)
		bpf_probe_read_kernel(&d->head, n & 7, udp + 8);
	return true;
}

/*
 * datagram_arrives notes the datagrams that are new in the queue: mostly one, and several where the kernel (6.18) puts those of several CPUs
 * into the queue at once and tells of each afterwards. When those before the first of a recording came is not known. Whether the sender is of
 * the container, the last ones decide together: over loopback it is the current task, and otherwise an interrupt has any task below it.
 */
#define DATAGRAMS_AT_ONCE 8
static __always_inline int datagram_arrives(struct sock *sk)
{
	struct datagrams *of = bpf_sk_storage_get(&datagram_sockets, sk, 0, 0);
	__u64 new[DATAGRAMS_AT_ONCE], seen, last, now = bpf_ktime_get_ns();
	const struct sk_buff *queue = (void *)&sk->sk_receive_queue, *skb;
	const struct sk_buff *taken = (void *)&((struct udp_sock *)sk)->reader_queue; /* a reader may move them there meanwhile */
	int n = 0;

	if (!of || of->epoch != epoch)
		return 0;
	if (current_thread()) {
		if (of->inside < MOST_JUDGED)
			of->inside++;
	} else if (of->inside > -MOST_JUDGED) {
		of->inside--;
	}
	/* Once all are read, the buffer of the last one may be that of a new one. */
	seen = of->last;
	last = of->read < of->came ? seen : 0;
	skb = sk->sk_receive_queue.prev;
	for (; n < DATAGRAMS_AT_ONCE && skb && skb != queue && skb != taken && (__u64)skb != last; n++) {
		new[n] = (__u64)skb;
		if (!seen) {
			n = 1;
			break;
		}
		skb = BPF_CORE_READ(skb, prev);
	}
	if (!n || __sync_val_compare_and_swap(&of->last, seen, new[0]) != seen)
		return 0; /* another CPU notes them */
	for (int i = DATAGRAMS_AT_ONCE - 1; i >= 0; i--) {
		if (i >= n)
			continue;
		struct datagram *d = &of->waits[__sync_fetch_and_add(&of->came, 1) % DATAGRAMS_WAIT];
		read_packet((void *)new[i], FROM, d);
		d->at = now;
		d->skb = new[i];
	}
	return 0;
}

/*
 * next_datagram is the buffer that is read next from a socket, 0 if there is none. A reader moves those that came to the queue of readers,
 * which may be between the looks at both.
 */
static __always_inline __u64 next_datagram(const struct sock *sk)
{
	const struct sk_buff_head *taken = &((const struct udp_sock *)sk)->reader_queue;
	const struct sk_buff *first = BPF_CORE_READ(taken, next);

	if (first && first != (const void *)taken)
		return (__u64)first;
	first = sk->sk_receive_queue.next;
	if (first != (const void *)&sk->sk_receive_queue)
		return (__u64)first;
	first = BPF_CORE_READ(taken, next);
	return first == (const void *)taken ? 0 : (__u64)first;
}

static __always_inline void emit_datagram(__u8 kind, __u64 at, const struct sock *sk, const struct thread *t, const struct datagram *d)
{
	union any_record r = {.datagram = {
		.r = {.at = at, .kind = kind, .a = t->epoch == epoch ? t->tid : 0, .b = (__u64)sk},
		.since = d->at,
		.client = d->client,
		.head = d->head,
	}};
	emit_sized(&r, sizeof(r.datagram));
}

/*
 * datagram_received tells of the datagrams that have left the queue since the last read. With one reader it is one. Of threads that read at
 * the same time the first one here tells of those of the others too, so that none is answered before; which of these threads has which is not
 * known. A server that sends many datagrams for one that it reads (QUIC) has records of ANSWERS_AT_ONCE of them.
 */
#define ANSWERS_AT_ONCE 256
static __always_inline int datagram_received(struct sock *sk, struct thread *t)
{
	struct datagrams *of;
	/* Before others see that they are read: an answer by another thread must not come before. */
	__u64 next, came, from, until, now = bpf_ktime_get_ns();
	bool lost;

	if (!served(sk, false))
		return 0;
	of = bpf_sk_storage_get(&datagram_sockets, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!of)
		return 0;
	if (of->epoch != epoch) {
		of->came = of->read = of->reads = of->last = of->inside = 0;
		of->epoch = epoch;
		return 0;
	}
	next = next_datagram(sk);
	came = of->came;
	from = of->read;
	lost = came - from > DATAGRAMS_WAIT;
	if (lost) /* what the oldest ones were is not known */
		from = next ? came - DATAGRAMS_WAIT : came;
	for (until = from; until < came && until - from < DATAGRAMS_WAIT; until++) {
		__u64 skb = of->waits[until % DATAGRAMS_WAIT].skb;
		if (!skb || skb == next) /* 0: another CPU notes it at this moment */
			break;
	}
	__u64 was = of->read, reads = __sync_fetch_and_add(&of->reads, 1) + 1;
	if (lost && next && until == came)
		until = from; /* the one that is next is not among them */
	if (until > was && __sync_val_compare_and_swap(&of->read, was, until) != was)
		until = from; /* another thread took them */
	if (of->inside > 0)
		return 0;
	of->answers = ANSWERS_AT_ONCE;
	for (__u32 i = 0; i < DATAGRAMS_AT_ONCE && from + i < until; i++) {
		struct datagram *d = &of->waits[(from + i) % DATAGRAMS_WAIT];
		emit_datagram(RECORD_DATAGRAM_READ, now, sk, t, d);
		d->skb = 0;
	}
	if (reads > of->read) { /* one was read that was not noted */
		struct datagram unknown = {};
		of->reads = of->read;
		emit_datagram(RECORD_DATAGRAM_READ, now, sk, t, &unknown);
	}
	return 0;
}

static __always_inline int datagram_sent(const struct sk_buff *skb)
{
	struct sock *sk = recorded ? skb->sk : NULL;
	struct datagrams *of;
	struct datagram d;
	struct thread *t;

	/* In this state no socket is a small one, of a connection of TCP that begins or ends. */
	if (!sk || sk->__sk_common.skc_state != TCP_CLOSE || !datagram(sk) || !(t = current_thread()) || !served(sk, true) ||
	    !read_packet(skb, TO, &d))
		return 0;
	of = bpf_sk_storage_get(&datagram_sockets, sk, 0, 0);
	if (!of || of->epoch != epoch || !of->answers)
		return 0;
	of->answers--;
	emit_datagram(RECORD_DATAGRAM_SENT, bpf_ktime_get_ns(), sk, t, &d);
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
