package accumulator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// TestG4WhatAnOwnWriteTakesOutOfAllAlternativesIsNotShownThoughTheServerHadToBeAsked: the watch is
// late. The server is asked about a write of another version while others write, so its answer is
// newer than the own write. It has the object, which is judged here.
func TestG4WhatAnOwnWriteTakesOutOfAllAlternativesIsNotShownThoughTheServerHadToBeAsked(t *testing.T) {
	for name, again := range map[string]bool{"updated": false, "made again": true} {
		for by, version := range map[string]string{"its version": "v1", "another version": "v2"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
					s.Create("as", sim.Thing("a", "in", "yes"))
					q := sim.Query("A", "as")
					q.Resolve = readable("as")
					q.AnyOf = []object.Selection{
						{Labels: labels.SelectorFromSet(labels.Set{"in": "yes"})},
						{Fields: fields.OneTermEqualSelector("spec.node", "n1")},
					}
					a := watching(t, streams, collect.Options{}, q)
					all := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
					synctest.Wait()
					var snap, whole one
					update(t, a, &snap)
					require.Len(t, snap.A, 1)
					s.Late(time.Hour)
					if again {
						s.Remove("as", "a")
					}
					key := object.Key{Namespace: "ns", Name: "a"}
					r := sim.Resource("as")
					r.Version = version
					w := streams.Begin(r, key)
					got := s.Put("as", key, sim.Thing("a", "in", "no"))
					s.Create("others", sim.Thing("x"))
					require.NoError(t, w.Commit(context.Background(), intake.Outcome{Write: coherence.Write{
						Key: key, UID: got.GetUID(), Version: got.GetResourceVersion(), Object: got.DeepCopy(),
					}}))
					update(t, a, &snap)
					assert.Empty(t, snap.A)
					update(t, all, &whole)
					require.Len(t, whole.A, 1)
					assert.Equal(t, got.GetResourceVersion(), whole.A[0].GetResourceVersion())

					<-time.After(2 * time.Hour)
					synctest.Wait()
					update(t, a, &snap)
					assert.Empty(t, snap.A)
				})
			})
		}
	}
}
