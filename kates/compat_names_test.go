package kates_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

// known are the names that programs know from Emissary's kates. A name that goes does not compile.
// A type is shown by a pointer, a field by its value.
var known = map[string]any{
	"APIResource":                       new(kates.APIResource),
	"Accumulator":                       new(kates.Accumulator),
	"Accumulator.Changed":               (*kates.Accumulator).Changed,
	"Accumulator.FilteredUpdate":        (*kates.Accumulator).FilteredUpdate,
	"Accumulator.Update":                (*kates.Accumulator).Update,
	"Accumulator.UpdateWithDeltas":      (*kates.Accumulator).UpdateWithDeltas,
	"ApplyPatchType":                    kates.ApplyPatchType,
	"Client":                            new(kates.Client),
	"Client.Create":                     (*kates.Client).Create,
	"Client.Delete":                     (*kates.Client).Delete,
	"Client.DynamicInterface":           (*kates.Client).DynamicInterface,
	"Client.Get":                        (*kates.Client).Get,
	"Client.InvalidateCache":            (*kates.Client).InvalidateCache,
	"Client.List":                       (*kates.Client).List,
	"Client.MaxAccumulatorInterval":     (*kates.Client).MaxAccumulatorInterval,
	"Client.Patch":                      (*kates.Client).Patch,
	"Client.PodLogs":                    (*kates.Client).PodLogs,
	"Client.ServerPreferredResources":   (*kates.Client).ServerPreferredResources,
	"Client.ServerResources":            (*kates.Client).ServerResources,
	"Client.ServerVersion":              (*kates.Client).ServerVersion,
	"Client.Update":                     (*kates.Client).Update,
	"Client.UpdateStatus":               (*kates.Client).UpdateStatus,
	"Client.Upsert":                     (*kates.Client).Upsert,
	"Client.WaitFor":                    (*kates.Client).WaitFor,
	"Client.Watch":                      (*kates.Client).Watch,
	"ClientConfig":                      new(kates.ClientConfig),
	"Closed":                            kates.LogEvent{}.Closed,
	"ClusterRole":                       new(kates.ClusterRole),
	"ClusterRoleBinding":                new(kates.ClusterRoleBinding),
	"ConfigMap":                         new(kates.ConfigMap),
	"Container":                         new(kates.Container),
	"Context":                           kates.ClientConfig{}.Context,
	"ConvertObject":                     kates.ConvertObject,
	"CoreConditionTrue":                 kates.CoreConditionTrue,
	"CreateOptions":                     new(kates.CreateOptions),
	"DeleteOptions":                     new(kates.DeleteOptions),
	"Delta":                             new(kates.Delta),
	"DeltaType":                         new(kates.DeltaType),
	"DeltaType.MarshalJSON":             (*kates.DeltaType).MarshalJSON,
	"DeltaType.UnmarshalJSON":           (*kates.DeltaType).UnmarshalJSON,
	"Deployment":                        new(kates.Deployment),
	"EndpointAddress":                   new(kates.EndpointAddress),
	"EndpointPort":                      new(kates.EndpointPort),
	"EndpointSubset":                    new(kates.EndpointSubset),
	"Endpoints":                         new(kates.Endpoints),
	"EnvVar":                            new(kates.EnvVar),
	"Error":                             kates.LogEvent{}.Error,
	"Event":                             new(kates.Event),
	"FieldSelector":                     kates.Query{}.FieldSelector,
	"GetOptions":                        new(kates.GetOptions),
	"HasOwnerReference":                 kates.HasOwnerReference,
	"InCluster":                         kates.InCluster,
	"Int":                               kates.Int,
	"IntOrString":                       new(kates.IntOrString),
	"IsConflict":                        kates.IsConflict,
	"IsNotFound":                        kates.IsNotFound,
	"JSONPatchType":                     kates.JSONPatchType,
	"Kind":                              kates.Query{}.Kind,
	"Kubeconfig":                        kates.ClientConfig{}.Kubeconfig,
	"LabelSelector":                     new(kates.LabelSelector),
	"LabelSet":                          new(kates.LabelSet),
	"ListOptions":                       new(kates.ListOptions),
	"LocalObjectReference":              new(kates.LocalObjectReference),
	"LogEvent":                          new(kates.LogEvent),
	"MergePatchType":                    kates.MergePatchType,
	"MergeUpdate":                       kates.MergeUpdate,
	"MustParseQuantity":                 kates.MustParseQuantity,
	"Name":                              kates.Query{}.Name,
	"Namespace":                         new(kates.Namespace),
	"NamespaceAll":                      kates.NamespaceAll,
	"NamespaceNone":                     kates.NamespaceNone,
	"NewClient":                         kates.NewClient,
	"NewClientFactory":                  kates.NewClientFactory,
	"NewDelta":                          kates.NewDelta,
	"NewDeltaFromObject":                kates.NewDeltaFromObject,
	"NewObject":                         kates.NewObject,
	"NewObjectFromUnstructured":         kates.NewObjectFromUnstructured,
	"NewUnstructured":                   kates.NewUnstructured,
	"NewUnstructuredFromObject":         kates.NewUnstructuredFromObject,
	"Node":                              new(kates.Node),
	"NodeUnreachablePodReason":          kates.NodeUnreachablePodReason,
	"Object":                            new(kates.Object),
	"ObjectAdd":                         kates.ObjectAdd,
	"ObjectDelete":                      kates.ObjectDelete,
	"ObjectMeta":                        new(kates.ObjectMeta),
	"ObjectReference":                   new(kates.ObjectReference),
	"ObjectUpdate":                      kates.ObjectUpdate,
	"Output":                            kates.LogEvent{}.Output,
	"ParseManifests":                    kates.ParseManifests,
	"ParseManifestsToUnstructured":      kates.ParseManifestsToUnstructured,
	"ParseSelector":                     kates.ParseSelector,
	"PatchOptions":                      new(kates.PatchOptions),
	"PatchType":                         new(kates.PatchType),
	"PersistentVolumeClaim":             new(kates.PersistentVolumeClaim),
	"PersistentVolumeClaimVolumeSource": new(kates.PersistentVolumeClaimVolumeSource),
	"Pod":                               new(kates.Pod),
	"PodCondition":                      new(kates.PodCondition),
	"PodFailed":                         kates.PodFailed,
	"PodID":                             kates.LogEvent{}.PodID,
	"PodLogOptions":                     new(kates.PodLogOptions),
	"PodReady":                          kates.PodReady,
	"PodSpec":                           new(kates.PodSpec),
	"PodSucceeded":                      kates.PodSucceeded,
	"PodTemplateSpec":                   new(kates.PodTemplateSpec),
	"Protocol":                          new(kates.Protocol),
	"ProtocolSCTP":                      kates.ProtocolSCTP,
	"ProtocolTCP":                       kates.ProtocolTCP,
	"ProtocolUDP":                       kates.ProtocolUDP,
	"Quantity":                          new(kates.Quantity),
	"Query":                             new(kates.Query),
	"ReplicaSet":                        new(kates.ReplicaSet),
	"ResourceCPU":                       kates.ResourceCPU,
	"ResourceList":                      new(kates.ResourceList),
	"ResourceMemory":                    kates.ResourceMemory,
	"ResourceRequirements":              new(kates.ResourceRequirements),
	"Role":                              new(kates.Role),
	"RoleBinding":                       new(kates.RoleBinding),
	"Secret":                            new(kates.Secret),
	"SecretTypeServiceAccountToken":     kates.SecretTypeServiceAccountToken,
	"SecretTypeTLS":                     kates.SecretTypeTLS,
	"SecurityContext":                   new(kates.SecurityContext),
	"Selector":                          new(kates.Selector),
	"Service":                           new(kates.Service),
	"ServiceAccount":                    new(kates.ServiceAccount),
	"ServicePort":                       new(kates.ServicePort),
	"ServiceSpec":                       new(kates.ServiceSpec),
	"ServiceTypeClusterIP":              kates.ServiceTypeClusterIP,
	"ServiceTypeLoadBalancer":           kates.ServiceTypeLoadBalancer,
	"SetOwnerReferences":                kates.SetOwnerReferences,
	"StatefulSet":                       new(kates.StatefulSet),
	"StrategicMergePatchType":           kates.StrategicMergePatchType,
	"Time":                              new(kates.Time),
	"Timestamp":                         kates.LogEvent{}.Timestamp,
	"Toleration":                        new(kates.Toleration),
	"TolerationOpEqual":                 kates.TolerationOpEqual,
	"TolerationOpExists":                kates.TolerationOpExists,
	"TolerationOperator":                new(kates.TolerationOperator),
	"TypeMeta":                          new(kates.TypeMeta),
	"Unstructured":                      new(kates.Unstructured),
	"UpdateOptions":                     new(kates.UpdateOptions),
	"VersionInfo":                       new(kates.VersionInfo),
	"Volume":                            new(kates.Volume),
	"VolumeMount":                       new(kates.VolumeMount),
	"VolumeSource":                      new(kates.VolumeSource),
}

// elsewhere are those of these names that are in modules of their own, by their folder. The tests
// of those modules use them.
var elsewhere = map[string][]string{
	"validate": {
		"ConditionTrue", "CustomResourceDefinition", "Established", "NamesAccepted", "NewValidator",
		"Validator", "Validator.Validate",
	},
	"configflags": {"ConfigFlags", "NewClientFromConfigFlags", "NewConfigFlags", "NewRESTMapper"},
	"metrics":     {"ContainerMetrics", "NodeMetrics", "PodMetrics"},
}

// leftOut are those that are nowhere, with the reason, which docs/migrating.md has too.
var leftOut = map[string]string{
	"Accumulator.Listen": "it takes a channel of a type that is not exported, so no program can call it",
}

func TestEveryNameThatProgramsKnowIsThereOrTheDocumentSaysWhereItIs(t *testing.T) {
	all := len(known) + len(leftOut)
	document, err := os.ReadFile(filepath.Join("..", "docs", "migrating.md"))
	require.NoError(t, err)
	for module, names := range elsewhere {
		assert.FileExists(t, filepath.Join(module, "go.mod"))
		assert.Contains(t, string(document), "`github.com/kates-go/kates/kates/"+module+"`")
		all += len(names)
		for _, name := range names {
			of, _, _ := strings.Cut(name, ".")
			assert.Contains(t, string(document), "`"+of+"`")
		}
	}
	for name, reason := range leftOut {
		assert.Contains(t, string(document), "| `"+name+"` | "+reason)
	}
	assert.Equal(t, 159, all, "the names that there are in Emissary's kates")
}
