package intake

import (
	"context"
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// A stream may bring a share of the objects ([object.Selection].Shard, KEP-5866). The rules:
//
//  1. Every request says which share. A server without sharding ignores that without an error, so
//     each object that comes is judged here, as those of own writes are: the hash is known
//     wherever the object is. Who sends what is therefore no question of correctness.
//  2. The UID and the namespace of an object never change, so it is never moved into a shard or
//     out of it. An object of the same name may be in another shard, by its UID.
//  3. A list that says that it is of another share lacks objects: it is an error.
//  4. A share by [shardrange.Controller] is judged here alone: the server sends everything. The
//     controller of an object may change. So each version is judged, and the object comes and goes
//     as one does that is relabelled.
//
// A server that shards says so in metadata.shardInfo of a list. (Kubernetes 1.36 does not say it
// in streamed lists, in those of metadata alone, and in those of custom kinds, though they are
// shares.) So it is certain that a server does not shard when an object of another shard comes,
// and that it does when a list says so.

// sharding is what the server has shown of a stream's shard. It needs no lock.
type sharding struct {
	said    atomic.Bool   // the latest list says that it is of this shard
	foreign atomic.Uint64 // objects of other shards that have come since it began
}

// The words of [Status].Shard.
const (
	shardSent     = "the server sends this share alone"
	shardForeign  = "the server does not shard: it sends the objects of all shards, and others are dropped here"
	shardUnknown  = "the server has sent no object of another shard"
	ShardNarrowed = "a part of a wider watch"
	shardOwned    = "the server sends all: it cannot select by owner, and what others own is dropped here"
)

// begin notes that a list begins: the server may have learnt to shard since the one before.
func (s *sharding) begin() {
	if s != nil {
		s.foreign.Store(0)
	}
}

// status says what is known of how the server shards.
func (s *sharding) status() string {
	switch {
	case s == nil:
		return ""
	case s.foreign.Load() > 0:
		return shardForeign
	case s.said.Load():
		return shardSent
	}
	return shardUnknown
}

// answered takes in what a list says of its share; nil if it says nothing.
func (s *sharding) answered(want shardrange.Shard, info *metav1.ShardInfo) error {
	if info == nil {
		s.said.Store(false)
		return nil
	}
	got, err := shardrange.Parse(info.Selector)
	if err == nil && !got.Covers(want) {
		err = fmt.Errorf("the server has sent the share %q, where %q was asked for", object.Brief(info.Selector), object.Brief(want.String()))
	}
	if err != nil {
		return fmt.Errorf("a list of another share: %w", err)
	}
	s.said.Store(true)
	return nil
}

// shardedSource is the source of a stream that asks for a share.
type shardedSource struct {
	source.Source
	shard shardrange.Shard
	seen  *sharding
}

// ListItems checks that the list is not of another share.
func (s *shardedSource) ListItems(
	ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error,
) (metav1.ListMeta, error) {
	m, err := s.Source.ListItems(ctx, o, put)
	if err == nil && o.ShardSelector != "" {
		err = s.seen.answered(s.shard, m.ShardInfo)
	}
	return m, err
}

// Within is the source of one namespace.
func (s *shardedSource) Within(namespace string) source.Source {
	in := s.Source.Within(namespace)
	if in == nil {
		return nil
	}
	return &shardedSource{in, s.shard, s.seen}
}
