package kates_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// successor is a set whose objects are replaced by others.
type successor struct {
	*testing.T
	*katestest.Faults
	client *kates.Client
	set    kates.OwnedSet
}

func ofSuccessors(t *testing.T, test func(s *successor)) {
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t, katestest.WithManifests(twoVersions))
		s := &successor{T: t, Faults: katestest.NewFaults(t, 1)}
		config := rest.CopyConfig(server.Config)
		config.Wrap(s.Wrap)
		var err error
		s.client, err = kates.NewClientFromRESTConfig(config)
		require.NoError(t, err)
		defer s.client.Close()
		root := configMap("root")
		root.Namespace = "default"
		require.NoError(t, s.client.Create(t.Context(), root, root))
		s.set = kates.OwnedSet{Owner: root, SetName: "set"}
		test(s)
	})
}

const twoVersions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func (s *successor) object(text string) kates.Object {
	s.Helper()
	all, err := kates.ParseManifestsToUnstructured(text)
	require.NoError(s, err)
	require.Len(s, all, 1)
	return all[0]
}

const anEvent = `type: Normal, reason: R, action: a, eventTime: "2026-01-01T00:00:00.000000Z", reportingInstance: i`

func (s *successor) coreEvent() kates.Object {
	return s.object(`{apiVersion: v1, kind: Event, metadata: {name: e}, message: m, reportingComponent: x.io/y, ` + anEvent +
		`, involvedObject: {kind: ConfigMap, name: root, namespace: default}}`)
}

func (s *successor) newEvent() kates.Object {
	return s.object(`{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: e}, note: m, reportingController: x.io/y, ` + anEvent +
		`, regarding: {kind: ConfigMap, name: root, namespace: default}}`)
}

// exists reports whether the server has an object of the set.
func (s *successor) exists(o kates.Object) bool {
	s.Helper()
	named := o.DeepCopyObject().(kates.Object)
	named.SetNamespace("default")
	err := s.client.Get(s.Context(), named, nil)
	require.True(s, err == nil || kates.IsNotFound(err), err)
	return err == nil
}

// TestWhatWasAppliedInAnotherVersionOrThroughAnotherGroupIsNotPruned: it is the same object.
func TestWhatWasAppliedInAnotherVersionOrThroughAnotherGroupIsNotPruned(t *testing.T) {
	scaled := `spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}}`
	for name, c := range map[string]struct {
		objects func(s *successor) []kates.Object
		kinds   []string
	}{
		"an event": {func(s *successor) []kates.Object { return []kates.Object{s.coreEvent(), s.newEvent()} },
			[]string{"events", "Event.v1.events.k8s.io"}},
		"an autoscaler": {func(s *successor) []kates.Object {
			return []kates.Object{
				s.object(`{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: h}, ` + scaled),
				s.object(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, ` + scaled),
			}
		}, []string{"HorizontalPodAutoscaler.v1.autoscaling", "horizontalpodautoscalers.v2.autoscaling"}},
		"a custom object": {func(s *successor) []kates.Object {
			return []kates.Object{
				s.object(`{apiVersion: example.com/v1, kind: Thing, metadata: {name: t}, spec: {a: b}}`),
				s.object(`{apiVersion: example.com/v2, kind: Thing, metadata: {name: t}, spec: {a: c}}`),
			}
		}, []string{"Thing.v1.example.com", "Thing.v2.example.com"}},
	} {
		for _, unknown := range []bool{false, true} { // whether discovery says that they are stored as one
			t.Run(fmt.Sprint(name, ", not told: ", unknown), func(t *testing.T) {
				ofSuccessors(t, func(s *successor) {
					if unknown {
						s.On(katestest.Match{Where: func(r katestest.Request) bool {
							return slices.Contains([]string{"/api/v1", "/apis/events.k8s.io/v1"}, r.Path)
						}}).Status(403, "", 0)
					}
					objects := c.objects(s)
					s.set.Kinds = c.kinds
					for _, o := range append(objects, objects[0]) {
						s.set.Objects = []kates.Object{o}
						result, err := s.client.ApplyOwned(s.Context(), s.set, kates.ForceOwnership())
						require.NoError(s, err)
						assert.Empty(s, result.Pruned)
						assert.True(s, s.exists(o))
					}
					s.set.Objects = nil
					result, err := s.client.ApplyOwned(s.Context(), s.set)
					require.NoError(s, err)
					assert.Len(s, result.Pruned, 1, "once")
					assert.False(s, s.exists(objects[0]))
				})
			})
		}
	}
}

// TestWhatReplacesAnObjectIsThereBeforeTheObjectIsPruned: HoldPruning need not be asked for.
func TestWhatReplacesAnObjectIsThereBeforeTheObjectIsPruned(t *testing.T) {
	text := func(kind, name string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: %s, metadata: {name: %s}}`, kind, name)
	}
	for name, c := range map[string]struct {
		before, after func(s *successor) kates.Object
	}{
		"another kind": {
			func(s *successor) kates.Object { return s.object(text("ConfigMap", "x")) },
			func(s *successor) kates.Object { return s.object(text("Secret", "x")) },
		},
		"without a namespace": {
			func(s *successor) kates.Object {
				return s.object(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}}`)
			},
			func(s *successor) kates.Object { return s.object(text("Namespace", "x")) }, // its owner may not own it
		},
		"another group": {
			func(s *successor) kates.Object { return s.coreEvent() }, func(s *successor) kates.Object { return s.newEvent() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			ofSuccessors(t, func(s *successor) {
				s.set.Kinds = []string{"configmaps", "secrets", "events", "roles"}
				old, unrelated := c.before(s), s.object(text("Secret", "other"))
				s.set.Objects = []kates.Object{old, unrelated}
				_, err := s.client.ApplyOwned(s.Context(), s.set)
				require.NoError(s, err)

				s.set.Objects = []kates.Object{c.after(s)}
				s.On(katestest.Match{Verb: "patch"}).Times(1).Status(403, "", 0)
				result, err := s.client.ApplyOwned(s.Context(), s.set, kates.ForceOwnership())
				require.Error(s, err)
				assert.True(s, s.exists(old))
				assert.False(s, s.exists(unrelated), "its name is another one")
				assert.Len(s, result.Pruned, 1)
			})
		})
	}
}
