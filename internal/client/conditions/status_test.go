package conditions

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/internal/base/jsonform"
	objects "github.com/kates-go/kates/internal/object"
)

// said is an object, as YAML without its kind, and what its status should be.
type said struct {
	object  string
	phase   Phase
	message string
}

// statuses are objects of each kind with a rule. Where the YAML has no generation, it is 2, and so
// is the observedGeneration of kinds that have one.
var statuses = map[string][]said{
	"apps/v1 Deployment": {
		{`{spec: {replicas: 3}, status: {replicas: 3, updatedReplicas: 3, availableReplicas: 3}}`, Current, "all 3 pods are updated and available"},
		{`{status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}}`, Current, "all 1 pods"},
		{`{spec: {replicas: 0}, status: {}}`, Current, "all 0 pods"},
		{`{spec: {replicas: 0}, status: {observedGeneration: 0}}`, InProgress, "its controller has not seen it yet"},
		{`{spec: {replicas: 0}, metadata: {generation: 0}, status: {observedGeneration: 0}}`, Current, "all 0 pods"},
		{`{spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 3, updatedReplicas: 3, availableReplicas: 3}}`, InProgress, "its status is about generation 1, and it is at generation 2"},
		{`{spec: {replicas: 3}, status: {observedGeneration: 3, replicas: 3, updatedReplicas: 3, availableReplicas: 3}}`, InProgress, "its status is about generation 3"},
		{`{spec: {replicas: 3}, status: {replicas: 4, updatedReplicas: 2, availableReplicas: 3}}`, InProgress, "2 of 3 pods are updated"},
		{`{spec: {replicas: 3, paused: true}, status: {replicas: 3, availableReplicas: 3}}`, InProgress, "0 of 3 pods are updated, and its rollout is paused"},
		{`{spec: {replicas: 3}, status: {replicas: 5, updatedReplicas: 3, availableReplicas: 3}}`, InProgress, "2 pods of older revisions are left"},
		{`{spec: {replicas: 3}, status: {replicas: 5, updatedReplicas: 5, availableReplicas: 5}}`, InProgress, "2 pods are too many"},
		{`{spec: {replicas: 3}, status: {replicas: 3, updatedReplicas: 3, availableReplicas: 2}}`, InProgress, "2 of 3 pods are available"},
		{`{status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: "False", reason: Other}]}}`, InProgress, "its condition Progressing is false: Other"},
		{`{status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: "True"}, {type: Available, status: "False", message: few}]}}`, InProgress, "its condition Available is false: few"},
		{`{status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: Unknown, reason: DeploymentPaused}]}}`, Current, "all 1 pods"},
		{`{status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated}]}}`, Current, "all 1 pods"},
		{`{spec: {replicas: 3}, status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: quota}]}}`, InProgress, "0 of 3 pods are updated: FailedCreate: quota"},
		{`{spec: {replicas: 3}, status: {conditions: [{type: ReplicaFailure, status: "False", reason: FailedCreate}]}}`, InProgress, "0 of 3 pods are updated"},
		{`{spec: {replicas: 3}, status: {conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: slow}]}}`, Failed, "its rollout makes no progress: ProgressDeadlineExceeded: slow"},
		{`{spec: {replicas: 3}, status: {observedGeneration: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`, InProgress, "its status is about generation 1"},
		{`{metadata: {generation: 2, deletionTimestamp: "2026-01-02T03:04:05Z"}, status: {}}`, Terminating, "it is being deleted"},
		{`{metadata: {generation: 2, deletionTimestamp: "2026-01-02T03:04:05Z", finalizers: [a/b, c/d]}, status: {}}`, Terminating, "it is being deleted, with finalizers: a/b, c/d"},
	},
	"apps/v1 StatefulSet": {
		{`{spec: {replicas: 2}, status: {replicas: 2, readyReplicas: 2, updatedReplicas: 2, currentRevision: b, updateRevision: b}}`, Current, "all 2 pods are updated and ready"},
		{`{spec: {replicas: 2}, status: {observedGeneration: 0, replicas: 2}}`, InProgress, "its controller has not seen it yet"},
		{`{spec: {replicas: 2}, status: {replicas: 2, readyReplicas: 2, currentReplicas: 2}}`, InProgress, "0 of 2 pods are updated"},
		{`{spec: {replicas: 2}, status: {replicas: 1, readyReplicas: 1, updatedReplicas: 1}}`, InProgress, "1 of 2 pods exist"},
		{`{spec: {replicas: 2}, status: {replicas: 2, readyReplicas: 1, updatedReplicas: 2}}`, InProgress, "1 of 2 pods are ready"},
		{`{spec: {replicas: 1}, status: {replicas: 2, readyReplicas: 2, updatedReplicas: 2}}`, InProgress, "1 pods are too many"},
		{`{spec: {replicas: 2, minReadySeconds: 9}, status: {replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 1}}`, InProgress, "1 of 2 pods are available"},
		{`{spec: {replicas: 2}, status: {replicas: 2, readyReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`, InProgress, "1 of 2 pods are updated"},
		{`{spec: {replicas: 2}, status: {replicas: 2, readyReplicas: 2, updatedReplicas: 2, currentRevision: a, updateRevision: b}}`, InProgress, "its rollout to revision b ends"},
		{`{spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}, status: {replicas: 3, readyReplicas: 3, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`, InProgress, "1 of 2 pods are updated"},
		{`{spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}, status: {replicas: 3, readyReplicas: 3, updatedReplicas: 2, currentRevision: a, updateRevision: b}}`, Current, "all 3 pods are ready, and those from 1 on are updated"},
		{`{spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 9}}}, status: {replicas: 3, readyReplicas: 3, currentRevision: a, updateRevision: b}}`, Current, "all 3 pods are ready"},
		{`{spec: {replicas: 3, updateStrategy: {type: OnDelete}}, status: {replicas: 3, readyReplicas: 3, currentRevision: a, updateRevision: b}}`, Current, "OnDelete"},
		{`{spec: {replicas: 3, updateStrategy: {type: OnDelete}}, status: {replicas: 3, readyReplicas: 3, currentRevision: a, updateRevision: a}}`, Current, "all 3 pods are ready"},
		{`{spec: {replicas: 3, updateStrategy: {type: OnDelete}}, status: {replicas: 3, readyReplicas: 2}}`, InProgress, "2 of 3 pods are ready"},
	},
	"apps/v1 DaemonSet": {
		{`{status: {desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}}`, Current, "all 2 pods are updated and available"},
		{`{status: {desiredNumberScheduled: 0}}`, Current, "all 0 pods"},
		{`{status: {observedGeneration: 0, desiredNumberScheduled: 0}}`, InProgress, "its controller has not seen it yet"},
		{`{status: {desiredNumberScheduled: 2, currentNumberScheduled: 1, updatedNumberScheduled: 1, numberAvailable: 1}}`, InProgress, "1 of 2 nodes have a pod"},
		{`{status: {desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}}`, InProgress, "1 of 2 pods are updated"},
		{`{status: {desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1}}`, InProgress, "1 of 2 pods are available"},
		{`{status: {desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2, numberReady: 1}}`, Current, "all 2 pods are updated and available"},
		{`{status: {numberReady: 1}}`, Current, "all 0 pods"},
		{`{metadata: {generation: 0}, status: {observedGeneration: 0, desiredNumberScheduled: 1}}`, InProgress, "0 of 1 nodes have a pod"},
		{`{spec: {updateStrategy: {type: OnDelete}}, status: {desiredNumberScheduled: 2, currentNumberScheduled: 2, numberAvailable: 2}}`, Current, "all 2 pods are available"},
	},
	"apps/v1 ReplicaSet": {
		{`{spec: {replicas: 2}, status: {replicas: 2, availableReplicas: 2}}`, Current, "all 2 pods are available"},
		{`{status: {replicas: 1, availableReplicas: 1}}`, Current, "all 1 pods are available"},
		{`{spec: {replicas: 2}, status: {replicas: 1, availableReplicas: 1}}`, InProgress, "1 of 2 pods exist"},
		{`{spec: {replicas: 2}, status: {replicas: 2, availableReplicas: 1}}`, InProgress, "1 of 2 pods are available"},
		{`{spec: {replicas: 2}, status: {replicas: 2, availableReplicas: 2, readyReplicas: 1, fullyLabeledReplicas: 1}}`, Current, "all 2 pods are available"},
		{`{spec: {replicas: 2}, status: {replicas: 3, availableReplicas: 3}}`, InProgress, "1 pods are too many"},
		{`{spec: {replicas: 2}, status: {replicas: 0, conditions: [{type: ReplicaFailure, status: "True", message: quota}]}}`, InProgress, "0 of 2 pods exist: quota"},
		{`{spec: {replicas: 2}, status: {replicas: 2, availableReplicas: 2, conditions: [{type: ReplicaFailure, status: "True", reason: FailedDelete}]}}`, InProgress, "FailedDelete"},
	},
	"v1 ReplicationController": {
		{`{spec: {replicas: 2}, status: {replicas: 2, availableReplicas: 2}}`, Current, "all 2 pods are available"},
		{`{spec: {replicas: 2}, status: {replicas: 2, availableReplicas: 1}}`, InProgress, "1 of 2 pods are available"},
	},
	"v1 Pod": {
		{`{status: {phase: Running, conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`, Current, "it is ready"},
		{`{status: {phase: Succeeded}}`, Current, "it has succeeded"},
		{`{status: {phase: Failed, reason: Evicted, message: disk}}`, Failed, "it has failed: Evicted: disk"},
		{`{status: {}}`, InProgress, "it has no phase yet"},
		{`{status: {phase: Unknown, reason: NodeLost}}`, Unknown, "its phase is Unknown: NodeLost"},
		{`{status: {phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady}]}}`, InProgress, "it runs, and is not ready: ContainersNotReady"},
		{`{status: {phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}}, {name: b, state: {running: {}}}]}}`, Failed, "containers crash again and again: a"},
		{`{status: {phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {reason: CrashLoopBackOff}}}], containerStatuses: [{name: a, state: {waiting: {reason: PodInitializing}}}]}}`, Failed, "again and again: i"},
		{`{status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: ImagePullBackOff}}}]}}`, InProgress, "containers wait: a (ImagePullBackOff)"},
		{`{status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: ContainerCreating}}}]}}`, InProgress, "it is pending"},
		{`{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: no room}]}}`, InProgress, "it is not scheduled: Unschedulable: no room"},
	},
	"batch/v1 Job": {
		{`{status: {succeeded: 2, conditions: [{type: Complete, status: "True"}]}}`, Current, "it is complete: 2 pods have succeeded"},
		{`{status: {failed: 2, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`, Failed, "it has failed: BackoffLimitExceeded"},
		{`{status: {active: 1, conditions: [{type: FailureTarget, status: "True"}]}}`, InProgress, "1 pods are active"},
		{`{status: {succeeded: 2, conditions: [{type: SuccessCriteriaMet, status: "True"}]}}`, InProgress, "0 pods are active, 2 have succeeded, 0 have failed"},
		{`{spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True"}]}}`, InProgress, "it is suspended"},
		{`{}`, InProgress, "0 pods are active"},
	},
	"v1 PersistentVolumeClaim": {
		{`{status: {phase: Bound}}`, Current, "it is bound"},
		{`{status: {phase: Pending}}`, InProgress, "it is not bound"},
		{`{}`, InProgress, "it is not bound"},
		{`{status: {phase: Lost}}`, Failed, "its volume does not exist any more"},
	},
	"v1 Service": {
		{`{spec: {type: ClusterIP}}`, Current, "it needs no load balancer"},
		{`{}`, Current, "it needs no load balancer"},
		{`{spec: {type: LoadBalancer}}`, InProgress, "its load balancer has no address yet"},
		{`{spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`, Current, "its load balancer has an address"},
	},
	"policy/v1 PodDisruptionBudget": {
		{`{status: {currentHealthy: 2, desiredHealthy: 2}}`, Current, "2 pods are healthy, and 2 should be"},
		{`{status: {currentHealthy: 1, desiredHealthy: 2}}`, InProgress, "1 pods are healthy, and 2 should be"},
		{`{status: {observedGeneration: 0}}`, InProgress, "its controller has not seen it yet"},
		{`{status: {conditions: [{type: DisruptionAllowed, status: "False", reason: SyncFailed, message: no controller}]}}`, InProgress, "could not count the pods: SyncFailed: no controller"},
		{`{status: {currentHealthy: 2, desiredHealthy: 2, conditions: [{type: DisruptionAllowed, status: "False", reason: InsufficientPods}]}}`, Current, "2 pods"},
	},
	"apiextensions.k8s.io/v1 CustomResourceDefinition": {
		{`{status: {observedGeneration: 0, conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}}`, Current, "its kind is served"},
		{`{status: {conditions: [{type: Established, status: "True"}, {type: NamesAccepted, status: "False", reason: PluralConflict}]}}`, Failed, "its names are not accepted: PluralConflict"},
		{`{status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "False", reason: Installing}]}}`, InProgress, "its kind is not served yet"},
		{`{status: {conditions: [{type: Established, status: "False", reason: Other}]}}`, Failed, "its kind is not served: Other"},
		{`{}`, InProgress, "its kind is not served yet"},
	},
	"apiregistration.k8s.io/v1 APIService": {
		{`{status: {conditions: [{type: Available, status: "True"}]}}`, Current, "its server is available"},
		{`{status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints}]}}`, InProgress, "its server is not available: MissingEndpoints"},
		{`{}`, InProgress, "its server is not available"},
	},
	"v1 ConfigMap": {{`{data: {a: b}}`, Current, "nothing in its status says that it is not ready"}},
	"serving.knative.dev/v1 Service": {
		{`{spec: {type: LoadBalancer}, status: {conditions: [{type: Ready, status: "True"}]}}`, Current, "its condition Ready is true"},
	},
	"example.org/v1 Thing": {
		{`{}`, Current, "nothing in its status"},
		{`{status: {observedGeneration: 0}}`, Current, "nothing in its status"},
		{`{status: {observedGeneration: 1}}`, InProgress, "its status is about generation 1"},
		{`{status: {conditions: [{type: Other, status: "False"}]}}`, Current, "nothing in its status"},
		{`{status: {conditions: [{type: Ready, status: "True"}, {type: Available, status: "True"}]}}`, Current, "its condition Ready is true"},
		{`{status: {conditions: [{type: Ready, status: "True"}, {type: Available, status: "False", reason: Down}]}}`, InProgress, "its condition Available is false: Down"},
		{`{status: {conditions: [{type: Available, status: "True"}]}}`, Current, "its condition Available is true"},
		{`{status: {conditions: [{type: Ready, status: "False", reason: Starting, message: soon}]}}`, InProgress, "its condition Ready is false: Starting: soon"},
		{`{status: {conditions: [{type: Ready, status: Unknown}]}}`, InProgress, "its condition Ready is unknown"},
		{`{status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`, Current, "its condition Ready is true"},
		{`{status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`, InProgress, "its condition Ready is about generation 1, and it is at generation 2"},
		{`{metadata: {generation: 0}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`, Current, "its condition Ready is true"},
		{`{status: {conditions: [{type: Ready, status: "False"}, {type: Stalled, status: "True", reason: BadSpec}]}}`, Failed, "it is stalled: BadSpec"},
		{`{status: {conditions: [{type: Stalled, status: "True", observedGeneration: 1}]}}`, InProgress, "its condition Stalled is about generation 1"},
		{`{status: {conditions: [{type: Stalled, status: "False", observedGeneration: 1}, {type: Ready, status: "True"}]}}`, Current, "its condition Ready is true"},
		{`{status: {conditions: [{type: Reconciling, status: "True"}, {type: Ready, status: "True"}]}}`, InProgress, "it is being reconciled"},
		{`{status: {conditions: [{type: Reconciling, status: "True"}, {type: Failed, status: "True", message: broken}]}}`, Failed, "it has failed: broken"},
		{`{metadata: {deletionTimestamp: "2026-01-02T03:04:05Z"}, status: odd}`, Terminating, "it is being deleted"},

		// Fields of wrong types.
		{`{status: odd}`, Unknown, "status is not an object"},
		{`{metadata: odd}`, Unknown, "metadata is not an object"},
		{`{metadata: {generation: "2"}}`, Unknown, "metadata.generation is not an integer"},
		{`{metadata: {deletionTimestamp: 3}}`, Unknown, "metadata.deletionTimestamp is not a string"},
		{`{metadata: {deletionTimestamp: soon}}`, Unknown, "metadata.deletionTimestamp is not a time"},
		{`{status: {observedGeneration: 1.5}}`, Unknown, "status.observedGeneration is not an integer"},
		{`{status: {conditions: {Ready: true}}}`, Unknown, "status.conditions is not a list"},
		{`{status: {conditions: [Ready]}}`, Unknown, "status.conditions[0] is not an object"},
		{`{status: {conditions: [{type: A, status: "True"}, {type: 3}]}}`, Unknown, "status.conditions[1].type is not a string"},
		{`{status: {conditions: [{type: Ready, status: true}]}}`, Unknown, "status.conditions[0].status is not a string"},
		{`{status: {conditions: [{type: Ready, status: Perhaps}]}}`, Unknown, "status.conditions[0].status is none of True, False and Unknown"},
		{`{status: null}`, Current, "nothing in its status"},
		{`{status: {conditions: null, observedGeneration: null}}`, Current, "nothing in its status"},
	},
}

// untyped returns the object of a row.
func untyped(t testing.TB, kind, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	u := &unstructured.Unstructured{}
	apiVersion, name, _ := strings.Cut(kind, " ")
	whole := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, apiVersion, name) + strings.TrimPrefix(string(data), "{")
	if string(data) == "{}" {
		whole = strings.TrimSuffix(whole, ",}") + "}"
	}
	require.NoError(t, json.Unmarshal([]byte(whole), &u.Object), whole) // it decodes to floats
	content, err := jsonform.Copy(u.Object)
	require.NoError(t, err)
	u.Object = content.(map[string]any)
	complete(u.Object, "metadata", "generation")
	if r, own := rules[u.GroupVersionKind().GroupKind()]; u.Object["status"] != nil && (r.observed || !own) {
		complete(u.Object, "status", "observedGeneration")
	}
	return u
}

// complete sets a generation that a row does not mention. Zero stands for none.
func complete(object map[string]any, in, field string) {
	if object[in] == nil && in == "metadata" {
		object[in] = map[string]any{}
	}
	m, ok := object[in].(map[string]any)
	if !ok {
		return
	}
	if n, has := m[field]; !has {
		m[field] = float64(2)
	} else if n == float64(0) {
		delete(m, field)
	}
}

func TestTheStatusOfEachKindIsThatOfItsRuleTypedAndUntyped(t *testing.T) {
	for kind, rows := range statuses {
		t.Run(strings.ReplaceAll(kind, "/", "."), func(t *testing.T) {
			for _, row := range rows {
				u := untyped(t, kind, row.object)
				before := fmt.Sprint(u.Object)
				got := StatusOf(clientscheme.Scheme, u)
				assert.Equal(t, row.phase, got.Phase, "%s: %s", row.object, got.Message)
				assert.Contains(t, got.Message, row.message, row.object)
				assert.Equal(t, before, fmt.Sprint(u.Object), "it is not modified")
				data, err := json.Marshal(u)
				require.NoError(t, err)
				decoded := &unstructured.Unstructured{}
				if decoded.UnmarshalJSON(data) == nil { // with int64, as from a server
					assert.Equal(t, got, StatusOf(nil, decoded), row.object)
				}
				if typed, ok := typedForm(t, u); ok {
					assert.Equal(t, got, StatusOf(clientscheme.Scheme, typed), "%s as %T", row.object, typed)
				}
			}
		})
	}
}

// typedForm returns the object in its Go type, without a kind, as clients return it.
func typedForm(t *testing.T, u *unstructured.Unstructured) (objects.Object, bool) {
	t.Helper()
	typed, err := clientscheme.Scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, false
	}
	data, err := json.Marshal(u)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, typed), string(data))
	typed.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return typed.(objects.Object), true
}

func TestEveryKindWithARuleHasItsRows(t *testing.T) {
	has := map[schema.GroupKind]bool{}
	for kind := range statuses {
		apiVersion, name, _ := strings.Cut(kind, " ")
		gv, err := schema.ParseGroupVersion(apiVersion)
		require.NoError(t, err)
		has[gv.WithKind(name).GroupKind()] = true
	}
	for kind := range rules {
		assert.True(t, has[kind], kind)
	}
}
