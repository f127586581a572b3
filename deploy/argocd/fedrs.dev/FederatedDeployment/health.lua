-- Argo CD health of a FederatedDeployment, by the rules that Argo CD has for Deployments.
--
--   Degraded     only a person can fix it (Stalled): the spec is rejected, the rollout has failed or was undone; or pods do not
--                become ready (NotBecomingReady)
--   Suspended    spec.stopped or spec.paused is true, or the next step waits for an approval
--   Progressing  the controller has not observed the spec yet, or still works towards it
--   Healthy      each cluster has the revision, and every replica is placed and available
local status = obj.status or {}
local spec = obj.spec or {}
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
if spec.stopped then
  return health("Suspended", conditions.Paused, "spec.stopped is true")
end
if is_true("NotBecomingReady") then
  return health("Degraded", conditions.NotBecomingReady)
end
if spec.paused then
  return health("Suspended", nil, "spec.paused is true: templates are not rolled out")
end
local progressing = conditions.Progressing
if progressing ~= nil and progressing.reason == "WaitingForApproval" then
  return health("Suspended", progressing)
end
if is_true("Reconciling") then
  return health("Progressing", conditions.Reconciling)
end
if is_true("Ready") then
  return health("Healthy", conditions.Ready)
end
return health("Progressing", conditions.Ready, "Waiting for the controller to report Ready")
