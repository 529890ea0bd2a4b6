package kates_test

import (
	"context"
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// The signatures that the design fixes. A change of one of them does not compile. Where a call of
// former days has no options, it compiles because they are variadic.

// Clients.
var (
	_ func(kates.ClientConfig, ...kates.Option) (*kates.Client, error)                 = kates.NewClient
	_ func(*pflag.FlagSet, ...kates.Option) func() (*kates.Client, error)              = kates.NewClientFactory
	_ func(*rest.Config, ...kates.Option) (*kates.Client, error)                       = kates.NewClientFromRESTConfig
	_ func(dynamic.Interface, meta.RESTMapper, ...kates.Option) (*kates.Client, error) = kates.NewClientFromDynamic
	_ func() bool                                                                      = kates.InCluster
	_                                                                                  = kates.ClientConfig{Kubeconfig: "", Context: "", Namespace: ""}
	_                                                                                  = kates.Query{Name: "", Kind: "", Namespace: "", FieldSelector: "", LabelSelector: "", Optional: false}
)

type (
	client = *kates.Client
	write  = func(c client, ctx context.Context, resource, target any, opts ...kates.WriteOption) error
)

// Methods of clients.
var (
	_ write                                                                                        = client.Create
	_ write                                                                                        = client.Update
	_ write                                                                                        = client.UpdateStatus
	_ write                                                                                        = client.Delete
	_ write                                                                                        = client.Apply
	_ func(client, context.Context, any, any) error                                                = client.Get
	_ func(client, context.Context, kates.Query, any) error                                        = client.List
	_ func(client, context.Context, any, any, any, ...kates.WriteOption) error                     = client.Upsert
	_ func(client, context.Context, any, kates.PatchType, []byte, any, ...kates.WriteOption) error = client.Patch

	_ func(client, context.Context, ...kates.Query) (*kates.Accumulator, error)               = client.Watch
	_ func(client, context.Context, reflect.Type, ...kates.Query) (*kates.Accumulator, error) = client.WatchStruct
	_ func(client, context.Context) (types.UID, error)                                        = client.ClusterUID
	_ func(client, context.Context, string) error                                             = client.WaitFor
	_ func(client, time.Duration) error                                                       = client.MaxAccumulatorInterval
	_ func(client) error                                                                      = client.InvalidateCache
	_ func(client) (*kates.VersionInfo, error)                                                = client.ServerVersion
	_ func(client) ([]kates.APIResource, error)                                               = client.ServerResources
	_ func(client) ([]kates.APIResource, error)                                               = client.ServerPreferredResources
	_ func(client) dynamic.Interface                                                          = client.DynamicInterface
	_ func(client, ...kates.WatchOption) client                                               = client.With
	_ func(client, context.Context, any) error                                                = client.Observe
	_ func(client) error                                                                      = client.Ready
	_ func(client) kates.Status                                                               = client.Status
	_ func(client, context.Context) error                                                     = client.Sync
	_ func(client)                                                                            = client.Close
	_ func(client) meta.RESTMapper                                                            = client.RESTMapper

	_ func(client, context.Context, *kates.Pod, *kates.PodLogOptions, chan<- kates.LogEvent) error = client.PodLogs
	_                                                                                              = kates.LogEvent{PodID: "", Timestamp: "", Output: "", Closed: false, Error: nil}
)

type (
	accumulator = *kates.Accumulator
	deltas      = *[]*kates.Delta
	predicate   = func(*kates.Unstructured) bool
)

// Watches.
var (
	_ func(accumulator) <-chan struct{}                                        = accumulator.Changed
	_ func(accumulator, context.Context, any) (bool, error)                    = accumulator.Update
	_ func(accumulator, context.Context, any, deltas) (bool, error)            = accumulator.UpdateWithDeltas
	_ func(accumulator, context.Context, any, deltas, predicate) (bool, error) = accumulator.FilteredUpdate
	_ func(accumulator) kates.Status                                           = accumulator.Status
	_ func(accumulator) error                                                  = accumulator.Ready
	_ func(accumulator)                                                        = accumulator.Close

	_ = kates.Delta{TypeMeta: kates.TypeMeta{}, ObjectMeta: kates.ObjectMeta{}, DeltaType: kates.ObjectAdd, Query: ""}
)

type (
	some      struct{ Pods []*kates.Pod }
	snapshots = *kates.Snapshots[some]
)

// Snapshots.
var (
	_ func(context.Context, client, ...kates.Query) (snapshots, error) = kates.Watch[some]
	_ func(snapshots, context.Context) iter.Seq2[*some, error]         = snapshots.All
	_ func(snapshots) <-chan struct{}                                  = snapshots.Changed
	_ func(snapshots, context.Context, *some) (bool, error)            = snapshots.Update
	_ func(snapshots) kates.Status                                     = snapshots.Status
	_ func(snapshots) error                                            = snapshots.Ready
	_ func(snapshots)                                                  = snapshots.Close
)

// Helpers, as programs call them.
func TestHelpersAreCalledAsTheyWere(t *testing.T) {
	objects, err := kates.ParseManifests("{apiVersion: v1, kind: Pod, metadata: {name: a}}")
	assert.NoError(t, err)
	untyped, err := kates.ParseManifestsToUnstructured("{apiVersion: v1, kind: Pod, metadata: {name: a}}")
	assert.NoError(t, err)
	o, err := kates.NewObject("Pod", "v1")
	assert.NoError(t, err)
	_, err = kates.NewObjectFromUnstructured(kates.NewUnstructured("Pod", "v1"))
	assert.NoError(t, err)
	u, err := kates.NewUnstructuredFromObject(o)
	assert.NoError(t, err)
	assert.Equal(t, kates.ObjectAdd, kates.NewDelta(kates.ObjectAdd, u).DeltaType)
	d, err := kates.NewDeltaFromObject(kates.ObjectDelete, o)
	assert.NoError(t, err)
	assert.Equal(t, kates.ObjectDelete, d.DeltaType)
	assert.NoError(t, kates.ConvertObject(nil, objects[0], &kates.Pod{}))
	kates.MergeUpdate(u, untyped[0].(*kates.Unstructured))
	kates.SetOwnerReferences(o, objects[0])
	_ = kates.HasOwnerReference(o, objects[0])
}
