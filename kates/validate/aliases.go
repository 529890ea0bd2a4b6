package validate

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// CustomResourceDefinition is the type of the Kubernetes API. A client reads and writes it as it
// does other Go types that client-go's scheme does not have, if its TypeMeta says the kind.
type CustomResourceDefinition = apiextensionsv1.CustomResourceDefinition

// Conditions of a CustomResourceDefinition.
const (
	NamesAccepted = apiextensionsv1.NamesAccepted
	Established   = apiextensionsv1.Established
	ConditionTrue = apiextensionsv1.ConditionTrue
)
