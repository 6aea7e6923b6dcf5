"""The commands: a module for each DVC stage and for each command of users. See `eadpr.settings.command`."""
