package kates_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestAKeyMayBeSeveralTheSameTwiceAllOrNoneAndIsAskedForOncePerVersion has a key function whose
// answers change, which the contract forbids. An object keeps its keys until its next version.
func TestAKeyMayBeSeveralTheSameTwiceAllOrNoneAndIsAskedForOncePerVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)))
		asked, many, answer := 0, []string(nil), []string{"a"}
		for i := range 1000 {
			many = append(many, fmt.Sprint("k", i), fmt.Sprint("k", i))
		}
		key := kates.KeyOf(func(metav1.Object) []string { asked++; return answer })
		p, err := kates.WatchEach[maps](t.Context(), fake.Client, kates.Query{Name: "ConfigMaps", Key: key})
		require.NoError(t, err)
		next := func(a string, keys ...string) (texts []string) {
			answer = keys
			put(t, fake, "m", a)
			for {
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				turn, err := p.Next(ctx)
				cancel()
				if err != nil {
					return texts
				}
				texts = append(texts, turn.Key+": "+strings.TrimSpace(turn.Snapshot.text()))
				answer = nil // nobody calls it before the next version
				turn.Done(nil)
			}
		}
		assert.Equal(t, []string{"a: m1"}, next("1", "a"))
		assert.Len(t, next("2", many...), 1001)
		assert.Len(t, p.Keys(), 1000)
		gone := next("3", kates.EveryPartition, "b", "")
		assert.Len(t, gone, 1000)
		assert.Contains(t, gone, "k7: ")
		assert.Empty(t, p.Keys(), "what all have makes no partition")
		assert.Equal(t, []string{"a: m4"}, next("4", "a", ""), "an empty key is none")
		assert.Equal(t, []string{"a: "}, next("5", ""))
		assert.Zero(t, p.Status().Queries[0].Invalid)
		assert.Equal(t, []string{"a: m6", "b: m6"}, next("6", "b", "a", "b"))
		assert.Equal(t, 6, asked)
	})
}
