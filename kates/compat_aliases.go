package kates

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
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

// Object is a Kubernetes API object: it knows its kind, copies itself, and carries metadata.
// *corev1.Pod and *Unstructured are two.
type Object = objects.Object

// The types below are those of the Kubernetes API, so that small programs need no other import.
// They are aliases, not copies: a *Pod is a *corev1.Pod.

// Metadata and untyped objects.
type (
	TypeMeta             = metav1.TypeMeta
	ObjectMeta           = metav1.ObjectMeta
	APIResource          = metav1.APIResource
	ObjectReference      = corev1.ObjectReference
	LocalObjectReference = corev1.LocalObjectReference
	Unstructured         = unstructured.Unstructured
	// PartialObjectMetadata is an object that has only its kind and metadata.
	PartialObjectMetadata = metav1.PartialObjectMetadata
)

// Namespaces, configuration and events.
type (
	Namespace = corev1.Namespace
	Event     = corev1.Event
	ConfigMap = corev1.ConfigMap
	Secret    = corev1.Secret
)

// Services, their endpoints and ingress.
type (
	Service         = corev1.Service
	ServiceSpec     = corev1.ServiceSpec
	ServicePort     = corev1.ServicePort
	Endpoints       = corev1.Endpoints      //lint:ignore SA1019 programs that still read them compile unchanged
	EndpointSubset  = corev1.EndpointSubset //lint:ignore SA1019 as above
	EndpointAddress = corev1.EndpointAddress
	EndpointPort    = corev1.EndpointPort
	EndpointSlice   = discoveryv1.EndpointSlice
	Protocol        = corev1.Protocol
	Ingress         = networkingv1.Ingress
	IngressClass    = networkingv1.IngressClass
)

// Identities and rights.
type (
	ServiceAccount     = corev1.ServiceAccount
	Role               = rbacv1.Role
	RoleBinding        = rbacv1.RoleBinding
	ClusterRole        = rbacv1.ClusterRole
	ClusterRoleBinding = rbacv1.ClusterRoleBinding
)

// Pods, what they are made of, and where they run.
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

// Workloads.
type (
	Deployment  = appsv1.Deployment
	ReplicaSet  = appsv1.ReplicaSet
	StatefulSet = appsv1.StatefulSet
)

// Values.
type (
	Quantity    = resource.Quantity
	IntOrString = intstr.IntOrString
	Time        = metav1.Time
	VersionInfo = version.Info
)

// Requests.
type (
	PatchType     = types.PatchType
	GetOptions    = metav1.GetOptions
	ListOptions   = metav1.ListOptions
	CreateOptions = metav1.CreateOptions
	UpdateOptions = metav1.UpdateOptions
	PatchOptions  = metav1.PatchOptions
	DeleteOptions = metav1.DeleteOptions
)

// Selectors.
type (
	LabelSelector = metav1.LabelSelector
	LabelSet      = labels.Set
	Selector      = labels.Selector
)

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

	// NodeUnreachablePodReason is the reason in a pod's status when its node no longer answers.
	// client-go has no name for it.
	NodeUnreachablePodReason = "NodeLost"

	NamespaceAll  = metav1.NamespaceAll
	NamespaceNone = metav1.NamespaceNone

	JSONPatchType           = types.JSONPatchType
	MergePatchType          = types.MergePatchType
	StrategicMergePatchType = types.StrategicMergePatchType
	ApplyPatchType          = types.ApplyPatchType

	// Int is the type of an IntOrString that holds a number.
	Int = intstr.Int
)

// Functions of the Kubernetes libraries that programs need beside the types.
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
	// MustParseQuantity parses "100m", "2Gi" and the like. It is for constants: it panics on a
	// text that is no quantity.
	MustParseQuantity = resource.MustParse
	// ParseSelector parses a label selector such as "app=web,tier!=cache".
	ParseSelector = labels.Parse
)
