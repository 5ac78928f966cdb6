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

/*
 * datagram reports whether sk is a UDP socket of a server, which is connected to no client. A datagram is a request, and its
 * answer is the next datagram to that client from that socket, whichever thread sends it. So each has a number of its own, as
 * a connection with one request has.
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
		of->came = of->read = of->last = of->client = of->inside = of->behind = 0;
		of->epoch = e;
	}
	return of;
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

	d->client = d->head = 0;
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
 * datagram_arrives notes the datagrams that are new in the queue: mostly one, and several where the kernel (6.18) puts those
 * of several CPUs into the queue at once and tells of each afterwards. Whether the sender is of the container, the last ones
 * decide together: over loopback it is the current task, and otherwise an interrupt has any task below it.
 */
#define DATAGRAMS_AT_ONCE 8
static __always_inline int datagram_arrives(struct sock *sk)
{
	struct datagrams *of = datagrams_of(sk);
	__u64 new[DATAGRAMS_AT_ONCE], last, now = bpf_ktime_get_ns();
	const struct sk_buff *queue = (void *)&sk->sk_receive_queue, *skb = sk->sk_receive_queue.prev;
	int n = 0;

	if (!of || of->client)
		return 0;
	if (current_thread()) {
		if (of->inside < MOST_JUDGED)
			of->inside++;
	} else if (of->inside > -MOST_JUDGED) {
		of->inside--;
	}
	/* Once all are read, the buffer of the last one may be that of a new one. */
	last = of->read < of->came ? of->last : 0;
	for (; n < DATAGRAMS_AT_ONCE && skb != queue && (__u64)skb != last; n++) {
		new[n] = (__u64)skb;
		skb = BPF_CORE_READ(skb, prev);
	}
	if (n)
		of->last = new[0];
	for (int i = DATAGRAMS_AT_ONCE - 1; i >= 0; i--) {
		if (i >= n)
			continue;
		struct datagram *d = &of->waits[__sync_fetch_and_add(&of->came, 1) % DATAGRAMS_WAIT];
		d->mark = now;
		read_packet((void *)new[i], FROM, d);
	}
	return 0;
}

/* alike is how many bytes of two heads are the same. It has no branch, of which the verifier would follow each. */
static __always_inline __u64 alike(__u64 a, __u64 b)
{
	const __u64 low = 0x7f7f7f7f7f7f7f7fULL;

	a ^= b;
	return (~(((a & low) + low) | a | low) >> 7) * 0x0101010101010101ULL >> 56;
}

/* set_of is the first place of a client's set. */
static __always_inline __u32 set_of(__u64 client)
{
	return (client * HASH_FACTOR >> 32) % ASKED_SETS * ASKED_WAYS;
}

/* ask notes a request until it is answered. */
static __always_inline void ask(struct sock *sk, const struct datagram *d, __u32 number)
{
	struct asked *of = bpf_sk_storage_get(&datagrams_asked, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u32 set = set_of(d->client), place = 0;
	__u64 oldest = ~0ULL; /* marks of earlier recordings are the lowest */

	if (!of)
		return;
	for (__u32 i = 0; i < ASKED_WAYS; i++) {
		__u64 mark = of->by[set + i].mark;
		if (mark < oldest) {
			oldest = mark;
			place = i;
		}
	}
	struct datagram *a = &of->by[set + place % ASKED_WAYS];
	a->mark = 0;
	a->client = d->client;
	a->head = d->head;
	a->mark = (__u64)epoch << 32 | number;
}

/*
 * answered takes the request that a datagram answers, 0 if there is none. A client that waits for several answers tells them
 * apart by what the server repeats of its request, such as the number of a query of DNS, and so do we: it is the request whose
 * first bytes are most like the answer's. Of equals it is the last one: a client without such numbers waits for one answer at
 * a time, and what it asked before was lost.
 */
static __always_inline __u32 answered(struct sock *sk, const struct datagram *d)
{
	struct asked *of = bpf_sk_storage_get(&datagrams_asked, sk, 0, 0);
	__u32 set = set_of(d->client), place = 0;
	__u64 best = 0; /* alike + 1 << 32 | number */

	if (!of)
		return 0;
	for (__u32 i = 0; i < ASKED_WAYS; i++) {
		struct datagram *a = &of->by[set + i];
		__u64 mark = a->mark, its = (alike(a->head, d->head) + 1) << 32 | (__u32)mark;
		if (mark >> 32 == epoch && a->client == d->client && its > best) {
			best = its;
			place = i;
		}
	}
	__u64 mark = (__u64)epoch << 32 | (__u32)best;
	if (best && __sync_val_compare_and_swap(&of->by[set + place % ASKED_WAYS].mark, mark, 0) != mark)
		return 0; /* another thread took it */
	return best;
}

/* datagram_received takes the oldest datagram. Of more than DATAGRAMS_WAIT the oldest are lost. */
static __always_inline int datagram_received(struct sock *sk, struct thread *t)
{
	struct datagrams *of = datagrams_of(sk);
	__u64 now = bpf_ktime_get_ns();
	struct datagram d = {.mark = now}; /* it arrived before the recording */

	if (!of || of->client)
		return 0;
	__u64 came = of->came, waits = came - of->read;
	if (waits && waits <= DATAGRAMS_WAIT * 1024) {
		if (waits > DATAGRAMS_WAIT)
			of->read = came - DATAGRAMS_WAIT;
		d = of->waits[__sync_fetch_and_add(&of->read, 1) % DATAGRAMS_WAIT];
	}
	/*
	 * Where two CPUs told of one, or none did, the next that is read is another one. That ends once none waits; seen twice,
	 * since another thread may have taken one and not told yet.
	 */
	if (of->read >= came || sk->sk_receive_queue.qlen || BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen))
		of->behind = 0;
	else if (of->behind++)
		of->read = came;
	if (!d.client || of->inside > 0 || t->epoch != epoch)
		return 0;
	__u32 number = next_number();
	if (!number)
		return 0;
	ask(sk, &d, number);
	union any_record r = {.r = {.at = now, .kind = RECORD_RECEIVE, .a = t->tid, .b = number}};
	r.more.c = d.mark;
	emit_more(&r);
	return 0;
}

static __always_inline int datagram_sent(const struct sk_buff *skb)
{
	struct sock *sk = recorded ? skb->sk : NULL;
	struct datagrams *of;
	struct datagram d;
	struct thread *t;

	/* In this state no socket is a small one, of a connection of TCP that begins or ends. */
	if (!sk || sk->__sk_common.skc_state != TCP_CLOSE || !datagram(sk) || !(t = current_thread()) || !(of = datagrams_of(sk)))
		return 0;
	/* A server may send first in this recording: the answer to what it read before. */
	if (!of->came && !(BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & SOCK_BINDPORT_LOCK))
		of->client = 1;
	if (!read_packet(skb, TO, &d))
		return 0;
	__u32 number = answered(sk, &d);
	if (!number)
		return 0;
	union any_record r = {.r = {.at = bpf_ktime_get_ns(), .kind = RECORD_SEND, .a = t->tid, .b = number}};
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
