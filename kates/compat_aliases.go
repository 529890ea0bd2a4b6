package kates

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/version"

	objects "github.com/kates-go/kates/internal/object"
)

// The types and constants in this file are those of the Kubernetes API. They are aliases, not
// copies: a *Service is a *corev1.Service.

// Object is a Kubernetes API object: it knows its kind, copies itself, and carries metadata.
// *corev1.Pod and *Unstructured are two.
type Object = objects.Object

// Objects without a Go type of their own.
type (
	// Unstructured is a whole object of any kind: a map with what its JSON says.
	Unstructured = unstructured.Unstructured
	// PartialObjectMetadata is an object that has only its kind and metadata.
	PartialObjectMetadata = metav1.PartialObjectMetadata
)

// PatchType says what the data of a [Client.Patch] is.
type PatchType = types.PatchType

// The types of patches.
const (
	JSONPatchType           = types.JSONPatchType
	MergePatchType          = types.MergePatchType
	StrategicMergePatchType = types.StrategicMergePatchType
)

// What an error of the API server says.
var (
	// The functions Is… report whether err, however wrapped, is an answer of that kind.
	// IsNotFound: there is no such object, or no such resource.
	IsNotFound = apierrors.IsNotFound
	// IsConflict: the object has changed since the version that was sent.
	IsConflict = apierrors.IsConflict
	// IsAlreadyExists: a Create found an object of that name.
	IsAlreadyExists = apierrors.IsAlreadyExists
	// IsForbidden: the client has no right to do this.
	IsForbidden = apierrors.IsForbidden
	// IsUnauthorized: the server does not accept the client's credentials.
	IsUnauthorized = apierrors.IsUnauthorized
	// IsInvalid: the server's validation refused the object.
	IsInvalid = apierrors.IsInvalid
	// IsBadRequest: the server does not understand the request.
	IsBadRequest = apierrors.IsBadRequest
	// IsMethodNotSupported: the resource does not have the verb.
	IsMethodNotSupported = apierrors.IsMethodNotSupported
	// IsGone: what was asked for has been there, and is not available any more.
	IsGone = apierrors.IsGone
	// IsResourceExpired: the version that was asked for is too old.
	IsResourceExpired = apierrors.IsResourceExpired
	// IsTooManyRequests: the server asks for fewer requests.
	IsTooManyRequests = apierrors.IsTooManyRequests
	// IsServerTimeout and IsTimeout: the server did not do it in time, and may do it still.
	IsServerTimeout = apierrors.IsServerTimeout
	IsTimeout       = apierrors.IsTimeout
	// IsServiceUnavailable and IsInternalError: the server, or what it depends on, has a fault.
	IsServiceUnavailable = apierrors.IsServiceUnavailable
	IsInternalError      = apierrors.IsInternalError
)

// For Emissary's code: the type of patch that is a server-side apply. New code uses
// [Client.Apply].
const ApplyPatchType = types.ApplyPatchType

// For Emissary's code: metadata, and what names an object. New code uses the types of k8s.io, such
// as [metav1.ObjectMeta] and [corev1.ObjectReference].
type (
	TypeMeta             = metav1.TypeMeta
	ObjectMeta           = metav1.ObjectMeta
	APIResource          = metav1.APIResource
	ObjectReference      = corev1.ObjectReference
	LocalObjectReference = corev1.LocalObjectReference
)

// For Emissary's code: namespaces, configuration and events. New code uses the types of
// k8s.io/api, such as [corev1.ConfigMap].
type (
	Namespace = corev1.Namespace
	Event     = corev1.Event
	ConfigMap = corev1.ConfigMap
	Secret    = corev1.Secret
)

// For Emissary's code: services and their endpoints. New code uses the types of k8s.io/api:
// [corev1.Service], and k8s.io/api/discovery/v1.EndpointSlice in place of Endpoints.
type (
	Service         = corev1.Service
	ServiceSpec     = corev1.ServiceSpec
	ServicePort     = corev1.ServicePort
	Endpoints       = corev1.Endpoints      //lint:ignore SA1019 programs that still read them compile unchanged
	EndpointSubset  = corev1.EndpointSubset //lint:ignore SA1019 as above
	EndpointAddress = corev1.EndpointAddress
	EndpointPort    = corev1.EndpointPort
	Protocol        = corev1.Protocol
)

// For Emissary's code: identities and rights. New code uses the types of k8s.io/api, such as
// [corev1.ServiceAccount] and [rbacv1.Role].
type (
	ServiceAccount     = corev1.ServiceAccount
	Role               = rbacv1.Role
	RoleBinding        = rbacv1.RoleBinding
	ClusterRole        = rbacv1.ClusterRole
	ClusterRoleBinding = rbacv1.ClusterRoleBinding
)

// For Emissary's code: pods, what they are made of, and where they run. New code uses the types of
// k8s.io/api, such as [corev1.Pod].
type (
	Pod                               = corev1.Pod
	PodSpec                           = corev1.PodSpec
	PodTemplateSpec                   = corev1.PodTemplateSpec
	PodCondition                      = corev1.PodCondition
	PodLogOptions                     = corev1.PodLogOptions
	Container                         = corev1.Container
	EnvVar                            = corev1.EnvVar
	SecurityContext                   = corev1.SecurityContext
	Toleration                        = corev1.Toleration
	TolerationOperator                = corev1.TolerationOperator
	Node                              = corev1.Node
	Volume                            = corev1.Volume
	VolumeSource                      = corev1.VolumeSource
	VolumeMount                       = corev1.VolumeMount
	PersistentVolumeClaim             = corev1.PersistentVolumeClaim
	PersistentVolumeClaimVolumeSource = corev1.PersistentVolumeClaimVolumeSource
	ResourceRequirements              = corev1.ResourceRequirements
	ResourceList                      = corev1.ResourceList
)

// For Emissary's code: workloads. New code uses the types of k8s.io/api, such as
// [appsv1.Deployment].
type (
	Deployment  = appsv1.Deployment
	ReplicaSet  = appsv1.ReplicaSet
	StatefulSet = appsv1.StatefulSet
)

// For Emissary's code: values in objects, and the server's version. New code uses the types of
// k8s.io/apimachinery: [resource.Quantity], [intstr.IntOrString], [metav1.Time], [version.Info].
type (
	Quantity    = resource.Quantity
	IntOrString = intstr.IntOrString
	Time        = metav1.Time
	VersionInfo = version.Info
)

// For Emissary's code: options of client-go's requests. Calls of a [Client] take a [WriteOption].
// New code uses the types of k8s.io/apimachinery, such as [metav1.ListOptions], for other clients.
type (
	GetOptions    = metav1.GetOptions
	ListOptions   = metav1.ListOptions
	CreateOptions = metav1.CreateOptions
	UpdateOptions = metav1.UpdateOptions
	PatchOptions  = metav1.PatchOptions
	DeleteOptions = metav1.DeleteOptions
)

// For Emissary's code: selectors. New code uses the types of k8s.io/apimachinery:
// [metav1.LabelSelector], [labels.Set], [labels.Selector].
type (
	LabelSelector = metav1.LabelSelector
	LabelSet      = labels.Set
	Selector      = labels.Selector
)

// For Emissary's code: values of fields. New code uses the constants of k8s.io/api, such as
// [corev1.ProtocolTCP].
const (
	SecretTypeServiceAccountToken = corev1.SecretTypeServiceAccountToken
	SecretTypeTLS                 = corev1.SecretTypeTLS

	ProtocolTCP  = corev1.ProtocolTCP
	ProtocolUDP  = corev1.ProtocolUDP
	ProtocolSCTP = corev1.ProtocolSCTP

	ServiceTypeLoadBalancer = corev1.ServiceTypeLoadBalancer
	ServiceTypeClusterIP    = corev1.ServiceTypeClusterIP

	TolerationOpExists = corev1.TolerationOpExists
	TolerationOpEqual  = corev1.TolerationOpEqual

	PodSucceeded      = corev1.PodSucceeded
	PodFailed         = corev1.PodFailed
	PodReady          = corev1.PodReady
	CoreConditionTrue = corev1.ConditionTrue

	ResourceCPU    = corev1.ResourceCPU
	ResourceMemory = corev1.ResourceMemory
)

// For Emissary's code: the reason in the status of a pod whose node no longer answers. client-go
// has no name for it. New code asks [StatusOf] whether a pod is ready.
const NodeUnreachablePodReason = "NodeLost"

// For Emissary's code: names for no namespace. New code leaves [Query].Namespace empty, or uses
// [metav1.NamespaceAll].
const (
	NamespaceAll  = metav1.NamespaceAll
	NamespaceNone = metav1.NamespaceNone
)

// For Emissary's code: the type of an IntOrString that holds a number. New code uses [intstr.Int].
const Int = intstr.Int

// For Emissary's code: MustParseQuantity parses "100m", "2Gi" and the like, and panics on other
// texts. New code uses [resource.MustParse].
var MustParseQuantity = resource.MustParse

// For Emissary's code: ParseSelector parses a label selector such as "app=web,tier!=cache". New
// code uses [labels.Parse], or gives the text to [Query].LabelSelector.
var ParseSelector = labels.Parse
