package kates_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// orderly is a server whose requests a test can hold, and an owner in it.
type orderly struct {
	*katestest.Faults
	client *kates.Client
	set    kates.OwnedSet
}

func inOrder(t *testing.T, test func(t *testing.T, o *orderly)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t)
		o := &orderly{Faults: katestest.NewFaults(t, 1)}
		config := rest.CopyConfig(server.Config)
		config.Wrap(o.Wrap)
		var err error
		o.client, err = kates.NewClientFromRESTConfig(config)
		require.NoError(t, err)
		defer o.client.Close()
		root := configMap("root")
		root.Namespace = "default"
		require.NoError(t, o.client.Create(t.Context(), root, root))
		o.set = kates.OwnedSet{Owner: root, SetName: "set"}
		test(t, o)
	})
}

// want fills the set: a letter makes an object of a kind, in the order of the letters.
func (o *orderly) want(kinds string) {
	o.set.Objects = nil
	for i, kind := range kinds {
		name := fmt.Sprintf("%c%02d", kind, i)
		var one kates.Object
		switch kind {
		case 'c':
			one = configMap(name)
		case 's':
			one = &kates.ServiceAccount{ObjectMeta: kates.ObjectMeta{Name: name}}
		case 'r':
			one = &rbacv1.Role{ObjectMeta: kates.ObjectMeta{Name: name}}
		}
		o.set.Objects = append(o.set.Objects, one)
	}
}

// names are the names of the objects that requests of a verb were about.
func (o *orderly) names(verb string) (all []string) {
	for _, r := range o.Requests(katestest.Match{Verb: verb}) {
		all = append(all, r.Name)
	}
	return all
}

func ofResult(references []kates.ObjectReference) (all []string) {
	for _, r := range references {
		all = append(all, r.Name)
	}
	return all
}

func TestObjectsOfAnOwnedSetAreAppliedAndPrunedSideBySide(t *testing.T) {
	inOrder(t, func(t *testing.T, o *orderly) {
		o.want(strings.Repeat("c", 12))
		var result kates.OwnedResult
		run := func(verb string) {
			held := o.On(katestest.Match{Verb: verb}).Hold()
			done := make(chan error)
			go func() {
				var err error
				result, err = o.client.ApplyOwned(t.Context(), o.set)
				done <- err
			}()
			synctest.Wait()
			assert.Len(t, o.names(verb), 10, "no more at a time")
			held.Stop()
			require.NoError(t, <-done)
			assert.Len(t, o.names(verb), 12)
		}
		var want []string
		for _, one := range o.set.Objects {
			want = append(want, one.GetName())
		}
		run("patch")
		assert.Equal(t, want, ofResult(result.Applied), "whichever came first")

		o.set.Objects, o.set.Kinds = nil, []string{"configmaps"}
		run("delete")
		assert.Equal(t, want, ofResult(result.Pruned))
	})
}

func TestAnObjectOfAnOwnedSetWaitsForThoseThatTheServerWantsFirst(t *testing.T) {
	for _, test := range []struct {
		kinds   string
		inOrder bool
		stages  []int // how many are under way, until there are no more
	}{
		{"ccc", false, []int{3}},
		{"ccc", true, []int{1, 1, 1}},
		{"sccrrcc", false, []int{1, 2, 2, 2}},
		{"ccs", false, []int{2, 1}},
		{"ssrc", false, []int{2, 1, 1}},
	} {
		inOrder(t, func(t *testing.T, o *orderly) {
			o.want(test.kinds)
			o.set.InOrder = test.inOrder
			done := make(chan error, 1)
			held := o.On(katestest.Match{Verb: "patch"}).Hold()
			go func() {
				_, err := o.client.ApplyOwned(t.Context(), o.set)
				done <- err
			}()
			before := 0
			for i, stage := range test.stages {
				synctest.Wait()
				assert.Len(t, o.names("patch"), before+stage, "stage %d of %q", i, test.kinds)
				before += stage
				next := o.On(katestest.Match{Verb: "patch"}).Hold()
				held.Stop()
				held = next
			}
			held.Stop()
			require.NoError(t, <-done)
			assert.Len(t, o.names("patch"), len(test.kinds))
		})
	}
}

func TestG8AnObjectOfAnOwnedSetThatIsRefusedDoesNotStopTheOthers(t *testing.T) {
	inOrder(t, func(t *testing.T, o *orderly) {
		o.want("ccccc")
		refused := o.On(katestest.Match{Verb: "patch", Name: "c01"}).Status(http.StatusForbidden, "", 0)
		result, err := o.client.ApplyOwned(t.Context(), o.set)
		require.ErrorContains(t, err, `apply configmaps "default/c01"`)
		assert.Equal(t, 1, strings.Count(err.Error(), `default/c01":`), "once: %v", err)
		assert.Equal(t, []string{"c00", "c02", "c03", "c04"}, ofResult(result.Applied))
		refused.Stop()
		result, err = o.client.ApplyOwned(t.Context(), o.set)
		require.NoError(t, err)
		assert.Equal(t, []string{"c01"}, ofResult(result.Applied))
		assert.Equal(t, []string{"c00", "c02", "c03", "c04"}, ofResult(result.Unchanged))
	})
}

func TestApplyOwnedSaysHowManyItHasNotTried(t *testing.T) {
	inOrder(t, func(t *testing.T, o *orderly) {
		o.want(strings.Repeat("c", 14))
		ctx, cancel := context.WithCancel(t.Context())
		held := o.On(katestest.Match{Verb: "patch"}).Hold()
		done := make(chan error)
		go func() {
			_, err := o.client.ApplyOwned(ctx, o.set)
			done <- err
		}()
		synctest.Wait()
		cancel()
		err := <-done
		require.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, "with 4 of 14 objects not tried")
		held.Stop()
	})
}
