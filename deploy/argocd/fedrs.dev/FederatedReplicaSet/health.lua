-- Argo CD health of a FederatedReplicaSet.
--
--   Suspended    spec.paused stops every change in the members
--   Degraded     only a person can fix it (Stalled), or pods do not become ready (NotBecomingReady)
--   Progressing  the controller has not observed the spec yet, or still works towards it
--   Healthy      every replica is placed and available
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function is_true(type)
  return conditions[type] ~= nil and conditions[type].status == "True"
end

local function health(name, condition, default)
  return { status = name, message = condition and condition.message or default }
end

if status.observedGeneration ~= obj.metadata.generation then
  return health("Progressing", nil, "Waiting for the controller to observe the spec")
end
if is_true("Stalled") then
  return health("Degraded", conditions.Stalled)
end
if obj.spec ~= nil and obj.spec.paused then
  return health("Suspended", conditions.Paused, "spec.paused is true")
end
if is_true("NotBecomingReady") then
  return health("Degraded", conditions.NotBecomingReady)
end
if is_true("Reconciling") then
  return health("Progressing", conditions.Reconciling)
end
if is_true("Ready") then
  return health("Healthy", conditions.Ready)
end
return health("Progressing", conditions.Ready, "Waiting for the controller to report Ready")
